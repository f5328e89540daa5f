"""A model on loopback that asks for a file once, and then says what it was given. Speaks as OpenAI and Anthropic do."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

ARGUMENTS = {"path": "README.md"}


class ScriptedModel:
    """The server. `asked` has the requests that came."""

    def __init__(self) -> None:
        asked: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append(body)
                said = json.dumps(REPLIES[self.path](body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.asked = asked
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def environment(self) -> dict[str, str]:
        """What the SDKs read."""
        return {
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "none",
        }


def chat(asked: dict[str, Any]) -> dict[str, Any]:
    """Chat Completions."""
    tool_named(asked, lambda tool: tool["function"]["name"])
    last = asked["messages"][-1]
    call = {"name": "read_file", "arguments": json.dumps(ARGUMENTS)}
    is_given = last["role"] == "tool"
    if is_given:
        assert last["tool_call_id"] == "call_1"
        message: dict[str, Any] = {"role": "assistant", "content": f"It says: {text(last['content'])}"}
    else:
        calls = [{"id": "call_1", "type": "function", "function": call}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "stop" if is_given else "tool_calls"}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}


def responses(asked: dict[str, Any]) -> dict[str, Any]:
    """Responses."""
    tool_named(asked, lambda tool: tool["name"])
    last = asked["input"][-1]
    if last.get("type") == "function_call_output":
        said = {"type": "output_text", "text": f"It says: {last['output']}", "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
        item["content"] = [said]
    else:
        item = {"type": "function_call", "id": "f", "call_id": "call_1", "name": "read_file", "status": "completed"}
        item["arguments"] = json.dumps(ARGUMENTS)
    common = {"id": "r", "object": "response", "created_at": 0, "model": "m", "status": "completed", "tools": []}
    return {**common, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto"}


def messages(asked: dict[str, Any]) -> dict[str, Any]:
    """Messages."""
    tool_named(asked, lambda tool: tool["name"])
    last = asked["messages"][-1]["content"]
    is_given = not isinstance(last, str) and last[0]["type"] == "tool_result"
    if is_given:
        assert last[0]["tool_use_id"] == "toolu_1"
        content: dict[str, Any] = {"type": "text", "text": f"It says: {text(last[0]['content'])}"}
    else:
        content = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": ARGUMENTS}
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [content],
        "stop_reason": "end_turn" if is_given else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def text(content: Any) -> str:
    """The text of a message, which may be in blocks."""
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def tool_named(asked: dict[str, Any], name: Any) -> None:
    assert "read_file" in [name(tool) for tool in asked["tools"]], asked["tools"]


REPLIES = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}
