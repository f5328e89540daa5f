"""Events as they happen."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx

from . import _operations as ops
from . import _wire as wire
from ._following import Following, Source, is_end_of_call
from ._sse import Parser
from .errors import HaftError
from .models import Event, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from types import TracebackType

    from typing_extensions import Self

    Open = Callable[[ops.Operation[Any]], httpx.Response]


class EventStream:
    """Events of a call, a batch, a task, or of all of them. Where the connection breaks, it goes on by itself.

    Use it in a `with` block, or call `close`.
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

    def __iter__(self) -> Iterator[Event]:
        """Wait for events."""
        return self

    def __next__(self) -> Event:
        """Wait for the next event."""
        return next(self._events)

    def __enter__(self) -> Self:
        """Use the stream."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the stream."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._following.is_over = True
        self._events.close()

    def _follow(self) -> Generator[Event, None, None]:
        while not self._following.is_over:
            error: HaftError | None = None
            try:
                yield from self._connection()
            except httpx.TransportError as broken:
                error = wire.unreachable(broken)
            except HaftError as refused:
                error = refused
            if not self._following.is_over:
                time.sleep(self._following.pause(error))

    def _connection(self) -> Iterator[Event]:
        """Events of one connection."""
        with closing(self._opener(self._following.request())) as response:
            self._following.opened()
            parser = Parser()
            for chunk in response.iter_bytes():
                for event in parser.feed(chunk):
                    self._following.saw(event)
                    if event.name:
                        yield event
                    if self._following.is_over:
                        return


class CallStream(EventStream):
    """A call, with its events as they happen. Closing the stream before its end cancels the call."""

    def __init__(
        self,
        opener: Open,
        first: ops.Operation[Any],
        execution_id: str,
        ended: Callable[[], Result],
        cancel: Callable[[str | None], bool],
    ) -> None:
        """Use `client.stream`."""
        source = Source(ops.events_path("executions", execution_id), is_end_of_call, first)
        super().__init__(opener, source)
        #: By which the call can be watched and cancelled from elsewhere.
        self.execution_id = execution_id
        self._ended = ended
        self._cancel = cancel
        self._result: Result | None = None

    def __next__(self) -> Event:
        """Wait for the next event; the result is not one of them."""
        event = super().__next__()
        if event.name == "result":
            self._result = Result.of(event.raw)
            return super().__next__()
        return event

    def result(self) -> Result:
        """Wait for the end of the call, and return its result, or raise why it did not succeed."""
        for _ in self:
            pass
        if self._result is None:
            self._result = self._ended()
        return self._result.check()

    def cancel(self, reason: str | None = None) -> bool:
        """Cancel the call. The stream goes on to its last event."""
        return self._cancel(reason)
