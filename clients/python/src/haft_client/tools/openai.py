"""Tools for the SDK of OpenAI: Chat Completions and Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..options import Call, Context, Dialect
from ._provider import AsyncModelTools, ModelTools, made, member, parsed, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..async_client import AsyncHaft
    from ..client import Haft
    from ..models import Result


class _Chat:
    """Calls are `tool_calls` of a message."""

    dialect: Dialect = "openai-chat"

    def calls(self, given: Iterable[Any]) -> list[Call]:
        calls = [(call, member(call, "function")) for call in given if member(call, "type") == "function"]
        return [
            Call(member(function, "name"), parsed(member(function, "arguments")), member(call, "id"))
            for call, function in calls
        ]

    def messages(self, answers: Sequence[tuple[Call, Result]]) -> list[dict[str, Any]]:
        return [{"role": "tool", "tool_call_id": call.id, "content": text_of(result)} for call, result in answers]


class _Responses:
    """Calls are items of `output`."""

    dialect: Dialect = "openai-responses"

    def calls(self, given: Iterable[Any]) -> list[Call]:
        return [
            Call(member(item, "name"), parsed(member(item, "arguments")), member(item, "call_id"))
            for item in given
            if member(item, "type") == "function_call"
        ]

    def messages(self, answers: Sequence[tuple[Call, Result]]) -> list[dict[str, Any]]:
        return [
            {"type": "function_call_output", "call_id": call.id, "output": text_of(result)} for call, result in answers
        ]


def openai_tools(client: Haft, *names: str, context: Context | None = None) -> ModelTools:
    """Tools for Chat Completions; `run` takes the `tool_calls` of a message.

    Without names: those that a model is listed.
    """
    return ModelTools(client, _Chat(), names, context)


async def async_openai_tools(client: AsyncHaft, *names: str, context: Context | None = None) -> AsyncModelTools:
    """Tools for Chat Completions, with an `AsyncHaft`."""
    return await made(client, _Chat(), names, context)


def openai_responses_tools(client: Haft, *names: str, context: Context | None = None) -> ModelTools:
    """Tools for Responses; `run` takes `output` of a response. Without names: those that a model is listed."""
    return ModelTools(client, _Responses(), names, context)


async def async_openai_responses_tools(
    client: AsyncHaft, *names: str, context: Context | None = None
) -> AsyncModelTools:
    """Tools for Responses, with an `AsyncHaft`."""
    return await made(client, _Responses(), names, context)
