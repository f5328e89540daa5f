"""What a call can say besides its arguments. The names are those of docs/openapi.json; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ._json import without_none

if TYPE_CHECKING:
    from collections.abc import Mapping

Dialect = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "mcp"]


class Context(TypedDict, total=False):
    """Who a call is for, as far as the key does not say."""

    agent: str
    session: str
    conversation: str
    correlationId: str
    sandbox: str
    extra: Mapping[str, Any]


class Options(TypedDict, total=False):
    """How a call is carried out. Times are ISO 8601, such as `PT30S`."""

    attemptTimeout: str
    cache: Literal["allowed", "refresh", "off"]
    coerce: bool
    idleTimeout: str
    isolation: Literal["None", "Standard", "Strict", "Restricted"]
    isolationTechnology: Literal["auto", "process", "namespace", "runc", "gvisor"]
    limits: Mapping[str, Any]
    model: Mapping[str, Any]
    priority: int
    requireConfirmation: bool
    retry: Mapping[str, Any]
    timeout: str
    writes: Literal["staged", "staged_if_possible", "live"]


class How(TypedDict, total=False):
    """Keyword arguments of everything that makes a call."""

    #: Your own name for the call, which comes back on the result.
    id: str | None
    #: The deadline in seconds, with all attempts. haft stops a call that takes longer.
    timeout: float | None
    #: Calls with the same key have their effect once.
    idempotency_key: str | None
    #: The id of the execution (a UUID), by which the call can be watched and cancelled. haft makes one where absent.
    execution_id: str | None
    context: Context | None
    options: Options | None


class Remember(TypedDict, total=False):
    """What haft remembers of a yes, so that it does not ask again."""

    kind: str
    lasts: Literal["always", "session"]
    seconds: int


@dataclass(frozen=True)
class Call:
    """One call of a batch."""

    name: str
    #: An object. haft answers anything else with a failure of this call alone.
    arguments: Any = None
    #: Your own name for it, which comes back on the result.
    id: str | None = None
    #: Calls with the same key have their effect once.
    idempotency_key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Write it as `/v1/batch` takes it."""
        arguments = {} if self.arguments is None else self.arguments
        more = without_none(id=self.id, idempotencyKey=self.idempotency_key)
        return {"name": self.name, "arguments": arguments, **more}
