"""From requests to answers, without I/O: what both clients share."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from .errors import HaftError, NotReachable, error_for
from .models import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._operations import Operation

T = TypeVar("T")

_CONNECT = 10.0
#: Seconds for an answer that does not wait for a call.
_USUAL = 60.0
#: A stream that is silent says every 15 seconds that it is there.
_SILENT = 45.0
#: Statuses that a GET is tried again after.
_AGAIN = (429, 502, 503, 504)
_LONGEST_PAUSE = 10.0


@dataclass(frozen=True)
class Settings:
    """Where the server is, who asks, and how patiently."""

    base_url: str
    #: The unix socket, where it is one.
    socket: str | None
    key: str | None
    timeout: float
    retries: int

    @classmethod
    def of(cls, url: str | None, key: str | None, timeout: float, retries: int) -> Settings:
        """Fill up from `HAFT_URL` and `HAFT_KEY`."""
        url = url or os.environ.get("HAFT_URL")
        if not url:
            raise ValueError("Pass the address of `haft serve`, or set HAFT_URL")
        key = key or os.environ.get("HAFT_KEY") or None
        if url.startswith("unix:"):
            return cls("http://haft", url.removeprefix("unix:"), key, timeout, retries)
        return cls(url.rstrip("/"), None, key, timeout, retries)

    def headers(self) -> dict[str, str]:
        """Headers of every request."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def request(operation: Operation[Any], settings: Settings, accept: str = "application/json") -> dict[str, Any]:
    """Write an operation as httpx takes it."""
    waits = settings.timeout if operation.is_call else _USUAL
    read = _SILENT if accept == "text/event-stream" else waits + operation.patience
    # httpx would send `null` for an operation that has no body.
    body = {} if operation.body is None else {"json": operation.body}
    return {
        "method": operation.method,
        "url": operation.path,
        "params": dict(operation.params),
        "headers": {**operation.headers, "Accept": accept},
        "timeout": httpx.Timeout(read, connect=_CONNECT),
        **body,
    }


def answer(operation: Operation[T], response: httpx.Response) -> T:
    """Read an answer, or raise what it says."""
    if not response.is_success:
        raise problem(response)
    if response.headers.get("content-type", "").startswith("application/octet-stream"):
        return operation.read(response.content)
    try:
        return operation.read(response.json())
    except (ValueError, KeyError, TypeError) as error:
        raise HaftError("BAD_ANSWER", f"The answer is not one of haft's: {error!r}") from error


def problem(response: httpx.Response) -> HaftError:
    """Read what went wrong."""
    status, after = response.status_code, retry_after(response.headers)
    try:
        raw = json.loads(response.content)
        code, message = raw["code"], raw["detail"]
    except (ValueError, KeyError, TypeError):
        return HaftError("BAD_ANSWER", f"HTTP status {status} without a problem of haft's", status=status)
    result = Result.of(raw["result"]) if raw.get("result") else None
    return error_for(code, message, status=status, retry_after=after, result=result, raw=raw)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Read the header `Retry-After`, where it is a number of seconds."""
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None


def unreachable(error: httpx.TransportError) -> NotReachable:
    """Say that there was no answer."""
    return NotReachable("NOT_REACHABLE", f"haft did not answer: {str(error) or type(error).__name__}")


def pause(failures: int, after: float | None = None) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(after if after is not None else 0.1 * 2**failures, _LONGEST_PAUSE)


def pause_before_retry(
    operation: Operation[Any], settings: Settings, failures: int, response: httpx.Response | None
) -> float | None:
    """Seconds to wait before the request is sent again; `None` where it is not.

    Only a GET is sent again: nobody knows whether another request that got no answer had its effect.
    """
    if operation.method != "GET" or failures > settings.retries:
        return None
    if response is None:
        return pause(failures)
    return pause(failures, retry_after(response.headers)) if response.status_code in _AGAIN else None
