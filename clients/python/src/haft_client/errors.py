"""What goes wrong, as exceptions: one class for each way of handling it.

Every exception has the `code` of haft's error table, a `message` that says what happened, and `help` that says what to
do next. `raw` is the JSON that the server sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._help import HELP

if TYPE_CHECKING:
    from ._json import Object
    from .models import Result


class HaftError(Exception):
    """Something went wrong. The classes below say what; this one is for codes that are newer than this package."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        result: Result | None = None,
        raw: Object | None = None,
    ) -> None:
        """Make the exception of that row of the error table."""
        self.code = code
        self.message = message
        #: The HTTP status, where the server answered with one.
        self.status = status
        #: Seconds after which to try again, where the server says so.
        self.retry_after = retry_after
        #: The whole result, where a call has one.
        self.result = result
        #: What the server sent.
        self.raw: Object = raw if raw is not None else {}
        super().__init__(message)

    def __str__(self) -> str:
        """Say what happened, and what to do next."""
        return f"{self.code}: {self.message}" + (f"\n  help: {self.help}" if self.help else "")

    @property
    def help(self) -> str:
        """What to do next."""
        return HELP.get(self.code, "")

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed when it is sent again unchanged."""
        return bool(self.raw.get("retryable", False))

    @property
    def problems(self) -> list[Object]:
        """The single problems: `pointer`, `rule`, `message`."""
        return list(self.raw.get("problems") or [])

    @property
    def data(self) -> Object:
        """Facts for programs, such as `exitCode` of a command."""
        data = self.raw.get("data")
        return data if isinstance(data, dict) else {}


class NotReachable(HaftError):
    """The server did not answer, or the connection broke."""


class WaitTimeout(HaftError, TimeoutError):
    """What was waited for did not happen in time. It goes on; wait again, or cancel it."""


class Unauthenticated(HaftError):
    """The request has no valid key or token."""


class PermissionDenied(HaftError):
    """Policy, a missing right, the licence, or containment does not allow it."""


class NotFound(HaftError):
    """There is no such tool, task, approval, execution."""


class InvalidRequest(HaftError):
    """The request or the arguments are not as they have to be; `problems` says where."""


class Conflict(HaftError):
    """It was answered, ended or used before."""


class ApprovalRequired(HaftError):
    """A person has to approve the call first. Nothing was run."""

    @property
    def approval_id(self) -> str:
        """By which the question is answered."""
        return str(self.data.get("approvalId", ""))


class ApprovalDenied(HaftError):
    """A person said no."""


class ApprovalExpired(HaftError):
    """Nobody answered in time."""


class CallTimeout(HaftError, TimeoutError):
    """The call did not end before its deadline, and was stopped."""


class CallCancelled(HaftError):
    """The call was cancelled, or never started because another one failed."""


class Overloaded(HaftError):
    """Too many calls: a rate limit, a quota, a circuit breaker, a call that failed too often."""


class Unavailable(HaftError):
    """The server is shutting down, or cannot reach what it needs."""


class SandboxError(HaftError):
    """The containment could not be made, or it ended the program."""


class ToolFailed(HaftError):
    """The tool ran and failed. `result` has its output."""


class OutcomeUnknown(HaftError):
    """haft was stopped while the call ran: it may have had its effect. Look before you send it again."""


_CLASSES: dict[type[HaftError], str] = {
    Unauthenticated: "UNAUTHENTICATED",
    PermissionDenied: "TOOL_DISABLED TOOL_DENIED PERMISSION_DENIED LICENSE_REQUIRED NETWORK_POLICY_VIOLATION"
    " FILESYSTEM_POLICY_VIOLATION",
    NotFound: "TOOL_NOT_FOUND TASK_NOT_FOUND NOT_FOUND",
    InvalidRequest: "BAD_REQUEST VALIDATION_FAILED LIMIT_EXCEEDED BAD_DEFINITION BAD_SIGNATURE NOT_SUPPORTED",
    Conflict: "DUPLICATE_TOOL DUPLICATE_CALL_ID IDEMPOTENCY_CONFLICT ALREADY_ANSWERED TASK_FINISHED TASK_CANCEL_FAILED",
    ApprovalRequired: "CONFIRMATION_REQUIRED",
    ApprovalDenied: "CONFIRMATION_DENIED",
    ApprovalExpired: "APPROVAL_EXPIRED",
    CallTimeout: "TIMEOUT",
    CallCancelled: "CANCELLED NOT_STARTED BLOCKED",
    Overloaded: "CONCURRENT_LIMIT_EXCEEDED RATE_LIMITED QUOTA_EXCEEDED CIRCUIT_OPEN REPEATED_FAILURE",
    Unavailable: "SHUTTING_DOWN STORE_UNAVAILABLE UPSTREAM_UNAVAILABLE",
    SandboxError: "SANDBOX_CREATION_FAILED RESOURCE_LIMIT_EXCEEDED SANDBOX_CRASHED",
    ToolFailed: "EXECUTION_FAILED NON_ZERO_EXIT PANICKED STALE_FILE PATCH_FAILED OUTPUT_VALIDATION_FAILED",
    OutcomeUnknown: "OUTCOME_UNKNOWN",
}

#: The exception of each code of the error table.
BY_CODE: dict[str, type[HaftError]] = {code: kind for kind, codes in _CLASSES.items() for code in codes.split()}


def error_for(code: str, message: str, **facts: Any) -> HaftError:
    """Make the exception of that code."""
    return BY_CODE.get(code, HaftError)(code, message, **facts)
