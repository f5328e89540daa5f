"""What the SDKs of all providers have in common: calls in, messages out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from ..options import Call, Options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._json import Object
    from ..async_client import AsyncHaft
    from ..client import Haft
    from ..models import Definitions, Result
    from ..options import Context, Dialect

#: A model reads the results, and nobody has counted what it can take.
FOR_A_MODEL: Options = {"model": {"kind": "unknown"}}


class Form(Protocol):
    """How a provider writes calls and their results."""

    dialect: Dialect

    def calls(self, given: Iterable[Any]) -> list[Call]:
        """Read the calls in what a model said."""

    def messages(self, answers: Sequence[tuple[Call, Result]]) -> list[dict[str, Any]]:
        """Write results as messages for the model."""


def member(value: Any, name: str) -> Any:
    """Return a member of an object of an SDK, or of the same as a dictionary."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def parsed(arguments: str) -> Any:
    """Read arguments that a model wrote. What is no JSON stays as it is: haft tells the model so."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def text_of(result: Result) -> str:
    """All content of a result as text; what has none is named."""
    return "\n".join(part_as_text(part) for part in result.content)


def part_as_text(part: Object) -> str:
    """One piece of content as text."""
    text: str | None = part.get("text")
    return f"[{part['type']}: {part.get('mimeType') or part.get('uri')}]" if text is None else text


class _Tools:
    """Definitions in the form of a provider."""

    def __init__(self, form: Form, exported: Definitions, context: Context | None) -> None:
        self._form = form
        self._context = context
        #: As the server sent them, with its remarks about what the provider cannot say.
        self.exported = exported

    @property
    def definitions(self) -> list[Any]:
        """What goes under `tools` in the request to the provider."""
        return self.exported.tools

    def _calls(self, given: Iterable[Any] | None) -> list[Call]:
        back = self.exported.arguments_back
        calls = self._form.calls(given or ())
        return [Call(call.name, back(call.name, call.arguments), call.id) for call in calls]


class ModelTools(_Tools):
    """Tools for a model: `definitions` for the request, `run` for what it asks for."""

    def __init__(self, client: Haft, form: Form, names: tuple[str, ...], context: Context | None) -> None:
        """Use `openai_tools`, `openai_responses_tools` or `anthropic_tools`."""
        super().__init__(form, client.definitions(form.dialect, *names), context)
        self._client = client

    def run(self, given: Iterable[Any] | None) -> list[Any]:
        """Run the calls in what the model said, and return the messages that answer it; none where it made no call."""
        calls = self._calls(given)
        if not calls:
            return []
        results = self._client.batch(calls, continue_on_failure=True, context=self._context, options=FOR_A_MODEL)
        return self._form.messages(list(zip(calls, results, strict=True)))


class AsyncModelTools(_Tools):
    """Tools for a model, with an `AsyncHaft`."""

    def __init__(self, client: AsyncHaft, form: Form, exported: Definitions, context: Context | None) -> None:
        """Use `async_openai_tools`, `async_openai_responses_tools` or `async_anthropic_tools`."""
        super().__init__(form, exported, context)
        self._client = client

    async def run(self, given: Iterable[Any] | None) -> list[Any]:
        """Run the calls in what the model said, and return the messages that answer it; none where it made no call."""
        calls = self._calls(given)
        if not calls:
            return []
        results = await self._client.batch(calls, continue_on_failure=True, context=self._context, options=FOR_A_MODEL)
        return self._form.messages(list(zip(calls, results, strict=True)))


async def made(client: AsyncHaft, form: Form, names: tuple[str, ...], context: Context | None) -> AsyncModelTools:
    """Ask for definitions, and make tools of them."""
    return AsyncModelTools(client, form, await client.definitions(form.dialect, *names), context)
