"""Events as they happen, for `AsyncHaft`."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import httpx

from . import _operations as ops
from . import _wire as wire
from ._following import Following, Source, is_end_of_call
from ._sse import Parser
from .errors import HaftError
from .models import Event, Result

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from types import TracebackType

    from typing_extensions import Self

    Open = Callable[[ops.Operation[Any]], Awaitable[httpx.Response]]


class AsyncEventStream:
    """Events of a call, a batch, a task, or of all of them. Where the connection breaks, it goes on by itself.

    Use it in an `async with` block, or call `close`.
    """

    def __init__(self, opener: Open, source: Source, after: str | None = None) -> None:
        """Use `client.stream`, `client.events`, or `events` of a group."""
        self._opener = opener
        self._following = Following(source, after)
        self._events = self._follow()

    @property
    def last_id(self) -> str | None:
        """The id of the last event: `after` of a stream that goes on where this one was."""
        return self._following.last_id

    def __aiter__(self) -> AsyncIterator[Event]:
        """Wait for events."""
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event."""
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        """Use the stream."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the stream."""
        await self.close()

    async def close(self) -> None:
        """Close the connection."""
        self._following.is_over = True
        await self._events.aclose()

    async def _follow(self) -> AsyncGenerator[Event, None]:
        while not self._following.is_over:
            error: HaftError | None = None
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
            except httpx.TransportError as broken:
                error = wire.unreachable(broken)
            except HaftError as refused:
                error = refused
            if not self._following.is_over:
                await asyncio.sleep(self._following.pause(error))

    async def _connection(self) -> AsyncGenerator[Event, None]:
        """Events of one connection."""
        response = await self._opener(self._following.request())
        try:
            self._following.opened()
            parser = Parser()
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk):
                    self._following.saw(event)
                    if event.name:
                        yield event
                    if self._following.is_over:
                        return
        finally:
            await response.aclose()


class AsyncCallStream(AsyncEventStream):
    """A call, with its events as they happen. Closing the stream before its end cancels the call."""

    def __init__(
        self,
        opener: Open,
        first: ops.Operation[Any],
        execution_id: str,
        ended: Callable[[], Awaitable[Result]],
        cancel: Callable[[str | None], Awaitable[bool]],
    ) -> None:
        """Use `client.stream`."""
        source = Source(ops.events_path("executions", execution_id), is_end_of_call, first)
        super().__init__(opener, source)
        #: By which the call can be watched and cancelled from elsewhere.
        self.execution_id = execution_id
        self._ended = ended
        self._cancel = cancel
        self._result: Result | None = None

    async def __anext__(self) -> Event:
        """Wait for the next event; the result is not one of them."""
        event = await super().__anext__()
        if event.name == "result":
            self._result = Result.of(event.raw)
            return await super().__anext__()
        return event

    async def result(self) -> Result:
        """Wait for the end of the call, and return its result, or raise why it did not succeed."""
        async for _ in self:
            pass
        if self._result is None:
            self._result = await self._ended()
        return self._result.check()

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancel the call. The stream goes on to its last event."""
        return await self._cancel(reason)
