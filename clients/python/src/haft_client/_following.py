"""How a stream of events goes on after its connection broke. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _operations as ops
from . import _wire as wire
from .errors import HaftError, NotReachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from .models import Event

#: Attempts in a row to go on with a stream, before it is given up.
_ATTEMPTS = 5
_ENDS = frozenset({"tool:executed", "tool:error", "tool:timeout", "tool:cancelled", "result"})


def is_end_of_call(event: Event) -> bool:
    """Whether it is the last event of a call."""
    return event.name in _ENDS


def is_end_of_batch(event: Event) -> bool:
    """Whether it is the last event of a batch."""
    return event.name == "tool:batch-complete"


def is_end_of_task(event: Event) -> bool:
    """Whether it is the last event of a task."""
    return event.name == "task" and event.raw["state"] in ("completed", "failed", "cancelled")


def never(event: Event) -> bool:  # noqa: ARG001
    """Say that no event is the last one."""
    return False


@dataclass(frozen=True)
class Source:
    """Where events come from."""

    #: The GET that gives the events after the last one that was seen.
    path: str
    is_last: Callable[[Event], bool]
    #: The request that begins the stream, where it is another one.
    first: ops.Operation[Any] | None = None


class Following:
    """How far a client is in a stream."""

    def __init__(self, source: Source, after: str | None = None) -> None:
        """Begin, after that event where one is named."""
        self._source = source
        self._failures = 0
        self._is_open = False
        self._is_resumed = False
        self._is_at_end = False
        #: The id of the last event.
        self.last_id = after
        self.is_over = False

    def request(self) -> ops.Operation[Any]:
        """What to send to get the next events."""
        if self._source.first is not None and not self._is_open:
            return self._source.first
        self._is_resumed = True
        headers = {} if self.last_id is None else {"Last-Event-ID": self.last_id}
        return ops.Operation("GET", self._source.path, _nothing, headers=headers)

    def opened(self) -> None:
        """Note that the server answered with events."""
        self._is_open = True

    def saw(self, event: Event) -> None:
        """Note an event."""
        self._failures = 0
        if event.id is not None:
            self.last_id = event.id
        self._is_at_end = self._source.is_last(event)
        # The connection that a call was made on has its result after the last event.
        has_result = self._source.first is not None and not self._is_resumed
        self.is_over = self._is_at_end and (event.name == "result" or not has_result)

    def pause(self, error: HaftError | None) -> float:
        """Seconds to wait before asking again, after an error or after an end that is none; or raise the error."""
        if self._is_at_end:
            self.is_over = True
            return 0
        error = error or NotReachable("NOT_REACHABLE", "haft ended the stream before its last event")
        self._failures += 1
        may_pass = isinstance(error, NotReachable) or error.status in (429, 502, 503, 504)
        # A call is never sent twice: until the server answered, nobody knows whether it took the call.
        is_call = self._source.first is not None and not self._is_open
        if not may_pass or is_call or self._failures >= _ATTEMPTS:
            raise error
        return wire.pause(self._failures, error.retry_after)


def _nothing(raw: Any) -> Any:
    return raw
