"""What the server sends, as typed values. `raw` of each is the JSON as it came, with everything that is in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import HaftError, error_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._json import Object

T = TypeVar("T")

#: States of a task in which nothing more happens.
_OVER = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list. `next` is `after` of the following one; `None` on the last."""

    items: list[T]
    next: str | None
    raw: Object = field(repr=False)

    def __iter__(self) -> Iterator[T]:
        """Go through this page."""
        return iter(self.items)

    def __len__(self) -> int:
        """Count this page."""
        return len(self.items)


@dataclass(frozen=True)
class Result:
    """What came of a call."""

    call_id: str
    tool: str
    status: str
    #: The value that the tool's output schema describes.
    output: Any
    execution_id: str
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Result:
        """Read a `ToolResult`."""
        return cls(
            call_id=raw.get("callId", ""),
            tool=raw["tool"],
            status=raw["status"],
            output=raw.get("output"),
            execution_id=raw["metadata"]["executionId"],
            raw=raw,
        )

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.status == "Success"

    @property
    def content(self) -> list[Object]:
        """What a model reads: texts, pictures, sound, documents."""
        return list(self.raw.get("content") or [])

    @property
    def text(self) -> str:
        """The texts of the content; of a call that failed they say why."""
        return "\n".join(part["text"] for part in self.content if part["type"] == "text")

    @property
    def output_handle(self) -> str | None:
        """By which `client.read_output` reads the whole output, where `text` does not have all of it."""
        handle: str | None = self.raw["metadata"].get("outputHandle")
        return handle

    @property
    def error(self) -> HaftError | None:
        """Why the call did not succeed, as the exception that `check` raises."""
        error = self.raw.get("error")
        return error and error_for(error["code"], error["message"], result=self, raw=error)

    def check(self) -> Result:
        """Return this result, or raise why the call did not succeed."""
        if error := self.error:
            raise error
        return self


@dataclass(frozen=True)
class BatchResult:
    """What came of a batch: one result for each call, in call order."""

    batch_id: str
    results: list[Result]
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> BatchResult:
        """Read a `BatchResult`."""
        return cls(raw["summary"]["batchId"], [Result.of(result) for result in raw["results"]], raw)

    @property
    def ok(self) -> bool:
        """Whether every call succeeded."""
        return all(result.ok for result in self.results)

    def __iter__(self) -> Iterator[Result]:
        """Go through the results, in call order."""
        return iter(self.results)

    def __len__(self) -> int:
        """Count the calls."""
        return len(self.results)

    def __getitem__(self, index: int) -> Result:
        """Return the result of the call at that place."""
        return self.results[index]


@dataclass(frozen=True)
class Event:
    """Something that happened in a call, a batch or a task."""

    #: Such as `tool:output`; `task` is the task as it stands.
    name: str
    #: By which a stream goes on after this event; `None` where it cannot.
    id: str | None
    raw: Object = field(repr=False)

    @property
    def message(self) -> str:
        """What happened, in words."""
        return str(self.raw.get("message", ""))

    @property
    def data(self) -> Object:
        """What the event carries, such as `chunk` of `tool:output`."""
        data: Object = self.raw.get("data") or {}
        return data

    @property
    def execution_id(self) -> str | None:
        """The call in which it happened."""
        return self.raw.get("executionId")


@dataclass(frozen=True)
class Task:
    """A call that goes on without its caller."""

    id: str
    #: `pending`, `running`, `awaiting_approval`, `completed`, `failed`, `cancelled`.
    state: str
    tool: str
    execution_id: str
    #: The question that it waits for.
    approval_id: str | None
    #: How it ended. Lists do not have it.
    result: Result | None
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Task:
        """Read a `Task`."""
        result = raw.get("result")
        return cls(
            id=raw["taskId"],
            state=raw["state"],
            tool=raw["tool"],
            execution_id=raw["executionId"],
            approval_id=raw.get("approvalId"),
            result=Result.of(result) if result else None,
            raw=raw,
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in _OVER

    @property
    def poll_after(self) -> float:
        """Seconds to wait before asking again."""
        return float(self.raw.get("pollAfterMs") or 0) / 1000


@dataclass(frozen=True)
class Approval:
    """A question to a person about one call."""

    id: str
    #: `open`, `approved`, `denied`, `expired`, `used`, `edited`.
    state: str
    tool: str
    arguments: Object
    #: What the call would do.
    summary: str
    #: Why a person is asked.
    reason: str
    #: Everything that a yes covers, written out. Show it to the person who answers.
    view: str
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Approval:
        """Read an `Approval`."""
        names = ("id", "state", "tool", "arguments", "summary", "reason", "view")
        return cls(**{name: raw[name] for name in names}, raw=raw)

    @property
    def offers(self) -> list[Object]:
        """What a yes could remember: `kind` and what it `covers`, narrowest first."""
        return list(self.raw.get("offers") or [])


@dataclass(frozen=True)
class Execution:
    """One call that was made, or that runs."""

    id: str
    #: `running` or `ended`.
    state: str
    result: Result | None
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Execution:
        """Read an `Execution`."""
        result = raw.get("result")
        return cls(raw["executionId"], raw["state"], Result.of(result) if result else None, raw)


@dataclass(frozen=True)
class Plan:
    """What would happen to a call."""

    #: `ready`, `needs_approval`, `pending`, `refused`.
    decision: str
    tool: str
    #: Why a person is asked, or why the call is refused.
    reason: str | None
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Plan:
        """Read a `Plan`."""
        return cls(raw["decision"], raw["tool"], raw.get("reason"), raw)


@dataclass(frozen=True)
class Definitions:
    """Tools as a model's provider takes them."""

    #: What goes under `tools` in a request to the provider.
    tools: list[dict[str, Any]]
    #: What the provider's form cannot say.
    remarks: list[Object]
    #: How many other tools the caller may call.
    unlisted: int
    raw: Object = field(repr=False)

    @classmethod
    def of(cls, raw: Object) -> Definitions:
        """Read `Definitions`."""
        return cls(raw["tools"], raw["remarks"], raw["unlisted"], raw)

    def arguments_back(self, tool: str, arguments: Any) -> Any:
        """Arguments that a model sent, with the tool's own names of its parameters."""
        names: Object | None = self.raw["renamed"].get(tool)
        if not names or not isinstance(arguments, dict):
            return arguments
        return {names.get(name, name): value for name, value in arguments.items()}
