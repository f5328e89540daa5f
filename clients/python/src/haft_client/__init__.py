"""Calls tools through haft: call, batch, stream, approvals, tasks; tools for OpenAI, Anthropic and LangChain."""

from .async_client import AsyncHaft
from .async_streams import AsyncCallStream, AsyncEventStream
from .client import Haft
from .errors import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalRequired,
    CallCancelled,
    CallTimeout,
    Conflict,
    HaftError,
    InvalidRequest,
    NotFound,
    NotReachable,
    OutcomeUnknown,
    Overloaded,
    PermissionDenied,
    SandboxError,
    ToolFailed,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
)
from .models import Approval, BatchResult, Definitions, Event, Execution, Page, Plan, Result, Task
from .options import Call, Context, Dialect, Options, Remember
from .streams import CallStream, EventStream

__version__ = "0.1.0"

__all__ = [
    "Approval",
    "ApprovalDenied",
    "ApprovalExpired",
    "ApprovalRequired",
    "AsyncCallStream",
    "AsyncEventStream",
    "AsyncHaft",
    "BatchResult",
    "Call",
    "CallCancelled",
    "CallStream",
    "CallTimeout",
    "Conflict",
    "Context",
    "Definitions",
    "Dialect",
    "Event",
    "EventStream",
    "Execution",
    "Haft",
    "HaftError",
    "InvalidRequest",
    "NotFound",
    "NotReachable",
    "Options",
    "OutcomeUnknown",
    "Overloaded",
    "Page",
    "PermissionDenied",
    "Plan",
    "Remember",
    "Result",
    "SandboxError",
    "Task",
    "ToolFailed",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
]
