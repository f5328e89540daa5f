"""Tools for the SDKs of models."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from anthropic import Anthropic
from broken_line import BrokenLine
from langchain_core.messages import ToolMessage
from openai import OpenAI
from scripted_model import ScriptedModel

from haft_client import AsyncHaft, Haft, NotFound, NotReachable, Result
from haft_client.models import Result as Answer
from haft_client.tools import (
    anthropic_tools,
    async_anthropic_tools,
    async_langchain_tools,
    async_openai_responses_tools,
    async_openai_tools,
    langchain_tools,
    openai_responses_tools,
    openai_tools,
)
from haft_client.tools.anthropic import _Messages
from haft_client.tools.langchain import _tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Server

    Run = Callable[[Callable[[AsyncHaft], Any]], Any]

READ = {"id": "1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "README.md"}'}}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def test_a_model_of_openai_gets_what_it_asked_for(haft: Haft, model: ScriptedModel) -> None:
    client = OpenAI(base_url=f"{model.url}/v1", api_key="none")
    tools = openai_tools(haft, "read_file", "search_files")
    messages: list[Any] = [{"role": "user", "content": "What does the README say?"}]
    said = client.chat.completions.create(model="m", messages=messages, tools=tools.definitions).choices[0].message
    messages += [said, *tools.run(said.tool_calls)]
    said = client.chat.completions.create(model="m", messages=messages, tools=tools.definitions).choices[0].message
    assert said.content == "It says: # Waves\n"
    assert tools.run(said.tool_calls) == [], "it made no call"
    assert len(model.asked[0]["tools"]) == 2


def test_a_model_of_openai_gets_it_through_responses(haft: Haft, model: ScriptedModel) -> None:
    client = OpenAI(base_url=f"{model.url}/v1", api_key="none")
    tools = openai_responses_tools(haft, "read_file")
    said: list[Any] = [{"role": "user", "content": "What does the README say?"}]
    answer = client.responses.create(model="m", input=said, tools=tools.definitions)
    said += [*answer.output, *tools.run(answer.output)]
    answer = client.responses.create(model="m", input=said, tools=tools.definitions)
    assert answer.output_text == "It says: # Waves\n"


def test_a_model_of_anthropic_gets_what_it_asked_for(haft: Haft, model: ScriptedModel) -> None:
    client = Anthropic(base_url=model.url, api_key="none")
    tools = anthropic_tools(haft, "read_file")
    messages: list[Any] = [{"role": "user", "content": "What does the README say?"}]
    said = client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools.definitions)
    messages += [{"role": "assistant", "content": said.content}, *tools.run(said.content)]
    said = client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools.definitions)
    assert said.content[0].type == "text"
    assert said.content[0].text == "It says: # Waves\n"


def test_all_calls_of_a_message_are_answered_in_their_order(haft: Haft) -> None:
    tools = openai_tools(haft, "read_file", "write_file")
    broken = {"id": "2", "type": "function", "function": {"name": "read_file", "arguments": '{"pa'}}
    asks = {
        "id": "3",
        "type": "function",
        "function": {"name": "write_file", "arguments": '{"path": "m", "content": ""}'},
    }
    unknown = {"id": "4", "type": "function", "function": {"name": "nope", "arguments": ""}}
    answers = tools.run([READ, broken, asks, unknown])
    assert [answer["tool_call_id"] for answer in answers] == ["1", "2", "3", "4"]
    for answer, words in zip(
        answers, ["# Waves", "must be a JSON object", "A person has to approve", "Unknown tool: nope"], strict=True
    ):
        assert words in answer["content"]


def test_a_model_of_anthropic_reads_what_failed_as_an_error_and_sees_pictures(haft: Haft) -> None:
    tools = anthropic_tools(haft, "read_file")
    use = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "nope"}}
    [message] = tools.run([{"type": "text", "text": "Let me see"}, use])
    [block] = message["content"]
    assert (message["role"], block["tool_use_id"], block["is_error"]) == ("user", "t", True)
    assert "does not exist" in block["content"][0]["text"]

    parts = [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "uri": "file:///x", "text": "words"},
    ]
    raw = {"tool": "t", "status": "Success", "content": parts, "metadata": {"executionId": "e"}}
    from haft_client import Call

    [message] = _Messages().messages([(Call("t", id="t"), Answer.of(raw))])
    picture, sound, document = message["content"][0]["content"]
    assert picture["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert sound == {"type": "text", "text": "[audio: audio/wav]"}
    assert document == {"type": "text", "text": "words"}


def test_all_tools_that_a_model_is_listed_are_there_without_names(haft: Haft) -> None:
    every = {tool["name"] for tool in haft.tools(limit=1000)}
    assert {tool["function"]["name"] for tool in openai_tools(haft).definitions} == every
    with pytest.raises(NotFound):
        openai_tools(haft, "nope")


def tool_call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": "x", "name": name, "args": arguments}


def test_tools_of_langchain_call_haft(haft: Haft) -> None:
    read, write = langchain_tools(haft, "read_file", "write_file", context={"session": "s"})
    assert read.invoke({"path": "README.md"}) == "# Waves\n"
    assert "path" in read.args
    assert "Reads a file" in read.description
    message = read.invoke(tool_call("read_file", path="README.md"))
    assert isinstance(message, ToolMessage)
    assert isinstance(message.artifact, Result)
    failed = read.invoke(tool_call("read_file", path="nope"))
    assert (failed.status, "does not exist" in failed.content) == ("error", True)
    waits = write.invoke(tool_call("write_file", path="l.txt", content=""))
    assert "A person has to approve" in waits.content


def test_an_argument_of_a_tool_of_langchain_may_have_any_name() -> None:
    def run(**arguments: Any) -> tuple[str, Any]:
        return "ran", arguments

    async def arun(**arguments: Any) -> tuple[str, Any]:
        return run(**arguments)

    names = ("config", "run_manager", "self", "callbacks", "x")
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    definition = {"name": "odd", "description": "Odd", "inputSchema": schema}
    call = tool_call("odd", **{name: place for place, name in enumerate(names)})
    assert _tool(definition, func=run).invoke(call).artifact == call["args"]
    assert asyncio.run(_tool(definition, func=run).ainvoke(call)).artifact == call["args"]
    assert asyncio.run(_tool(definition, coroutine=arun).ainvoke(call)).artifact == call["args"]
    with pytest.raises(NotImplementedError):
        _tool(definition, coroutine=arun).invoke(call)


def test_a_server_that_is_gone_is_not_the_affair_of_a_model(server: Server) -> None:
    with BrokenLine(server.url) as line, Haft(line.url, server.caller) as haft:
        [read] = langchain_tools(haft, "read_file")
        line.stop()
        with pytest.raises(NotReachable):
            read.invoke({"path": "README.md"})


def test_the_same_with_asyncio(run_async: Run) -> None:
    async def test(haft: AsyncHaft) -> None:
        chat = await async_openai_tools(haft, "read_file")
        assert (await chat.run([READ]))[0]["content"] == "# Waves\n"
        assert await chat.run(None) == []
        item = {"type": "function_call", "call_id": "1", "name": "read_file", "arguments": '{"path": "README.md"}'}
        responses = await async_openai_responses_tools(haft, "read_file")
        assert (await responses.run([item]))[0]["output"] == "# Waves\n"
        use = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "README.md"}}
        anthropic = await async_anthropic_tools(haft, "read_file")
        assert (await anthropic.run([use]))[0]["content"][0]["is_error"] is False
        [read] = await async_langchain_tools(haft, "read_file")
        assert await read.ainvoke({"path": "README.md"}) == "# Waves\n"
        assert (await read.ainvoke(tool_call("read_file", path="nope"))).status == "error"

    run_async(test)
