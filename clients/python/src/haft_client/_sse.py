"""Server-Sent Events, from bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .models import Event

if TYPE_CHECKING:
    from collections.abc import Iterator


class Parser:
    """Takes bytes as they come, and gives whole events.

    Lines end with LF or CR LF alone: the JSON in them may have other characters that Python's `splitlines` takes for
    the end of a line.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._rest = b""
        self._name = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Give the events that these bytes complete."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            event = self._line(line.removesuffix(b"\r").decode())
            if event is not None:
                yield event

    def _line(self, line: str) -> Event | None:
        if not line:
            return self._end()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value
        return None

    def _end(self) -> Event | None:
        name, self._name = self._name, ""
        id_, self._id = self._id, None
        data, self._data = "\n".join(self._data), []
        if not data and id_ is None:
            return None
        # An event that has an id and nothing else says where a stream begins.
        return Event(name, id_, json.loads(data) if data else {})
