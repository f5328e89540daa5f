"""Tools for the SDK of Anthropic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..options import Call, Context, Dialect
from ._provider import AsyncModelTools, ModelTools, made, member, part_as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._json import Object
    from ..async_client import AsyncHaft
    from ..client import Haft
    from ..models import Result

#: Pictures that the provider takes.
_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def _block(part: Object) -> dict[str, Any]:
    if part["type"] == "image" and part["mimeType"] in _PICTURES:
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": part["mimeType"], "data": part["data"]},
        }
    return {"type": "text", "text": part_as_text(part)}


class _Messages:
    """Calls are blocks of `content`; one message of the user has all of their results."""

    dialect: Dialect = "anthropic"

    def calls(self, given: Iterable[Any]) -> list[Call]:
        return [
            Call(member(block, "name"), member(block, "input"), member(block, "id"))
            for block in given
            if member(block, "type") == "tool_use"
        ]

    def messages(self, answers: Sequence[tuple[Call, Result]]) -> list[dict[str, Any]]:
        blocks = [
            {
                "type": "tool_result",
                "tool_use_id": call.id,
                "content": [_block(part) for part in result.content],
                "is_error": not result.ok,
            }
            for call, result in answers
        ]
        return [{"role": "user", "content": blocks}]


def anthropic_tools(client: Haft, *names: str, context: Context | None = None) -> ModelTools:
    """Tools for Messages; `run` takes `content` of a message. Without names: those that a model is listed."""
    return ModelTools(client, _Messages(), names, context)


async def async_anthropic_tools(client: AsyncHaft, *names: str, context: Context | None = None) -> AsyncModelTools:
    """Tools for Messages, with an `AsyncHaft`."""
    return await made(client, _Messages(), names, context)
