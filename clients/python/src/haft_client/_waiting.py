"""How long to wait. No I/O."""

from __future__ import annotations

import math
import time

from .errors import WaitTimeout


class Deadline:
    """The end of a wait."""

    def __init__(self, said: str, timeout: float | None) -> None:
        """Begin to wait; `said` is what is not so when the time is over."""
        self._said = said
        self._timeout = timeout
        self._end = math.inf if timeout is None else time.monotonic() + timeout

    def seconds(self, most: int) -> int:
        """Whole seconds that are left, rounded down, and `most` at the most."""
        return int(max(0.0, min(self._end - time.monotonic(), most)))

    def pause(self, wanted: float) -> float:
        """Seconds to wait before looking again; raises `WaitTimeout` where none are left."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise WaitTimeout("WAIT_TIMEOUT", f"{self._said} after {self._timeout} seconds")
        # The server waits whole seconds: what is left of the last one is waited here.
        return min(max(wanted, 0.05), left)
