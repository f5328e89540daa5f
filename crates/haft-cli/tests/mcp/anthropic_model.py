"""A scripted model that speaks Anthropic's messages, for a host that is in a jail with it.

Arguments: a JSON file with the calls that the model asks for, one after the other; a file for its port; a file for what
the host gave back.
"""

import http.server
import json
import sys

calls = json.load(open(sys.argv[1]))
port_file, results_file = sys.argv[2:]


def events(request):
    given = [
        part
        for message in request["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
        if part.get("type") == "tool_result"
    ]
    with open(results_file, "w") as file:
        json.dump([part.get("content") for part in given], file)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    if request.get("tools") and len(given) < len(calls):
        name, arguments = calls[len(given)]
        block = {"type": "tool_use", "id": f"toolu_{len(given)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        reason = "tool_use"
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": "done"}
        reason = "end_turn"
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(404, "application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            return self.answer(200, "application/json", b'{"input_tokens": 1}')
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(request))
        self.answer(200, "text/event-stream", "".join(lines).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(port_file, "w") as file:
    file.write(str(server.server_address[1]))
server.serve_forever()
