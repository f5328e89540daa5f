"""Every request that the clients make, as data: what is sent, and how the answer is read. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from ._json import Object, without_none
from .models import Approval, BatchResult, Definitions, Execution, Page, Plan, Result, Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .options import Call, Context, Dialect, How, Options, Remember

T = TypeVar("T")

#: The longest that the server waits for the end of a task, in seconds.
LONGEST_WAIT = 60


@dataclass(frozen=True)
class Operation(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Seconds that the answer may take beyond what is usual, because the server waits.
    patience: float = 0
    #: Whether the answer comes when a call has ended, and not at once.
    is_call: bool = False


def _itself(raw: Any) -> Any:
    return raw


def _path(template: str, *ids: str) -> str:
    return template.format(*(quote(one, safe="") for one in ids))


def _get(path: str, read: Callable[[Any], T], **params: Any) -> Operation[T]:
    return Operation("GET", path, read, params=without_none(**params))


def _key(idempotency_key: str | None) -> dict[str, str]:
    return without_none(**{"Idempotency-Key": idempotency_key})


def page_of(name: str, read: Callable[[Any], T]) -> Callable[[Any], Page[T]]:
    """Read a page whose items stand under that name."""
    return lambda raw: Page([read(item) for item in raw[name]], raw.get("next"), raw)


def duration(seconds: float) -> str:
    """Write a time as the server takes it."""
    return f"PT{seconds:.3f}S"


def events_path(kind: str, one: str) -> str:
    """Where the events of an execution, a batch or a task are."""
    return _path("/v1/" + kind + "/{}/events", one)


def new_id() -> str:
    """Make an id of an execution or a batch."""
    return str(uuid4())


def _invoke(
    name: str, arguments: Mapping[str, Any] | None, how: How, *, detached: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Body and headers of a call."""
    options: dict[str, Any] = {**(how.get("options") or {}), **without_none(executionId=how.get("execution_id"))}
    timeout = how.get("timeout")
    if timeout is not None:
        options["timeout"] = duration(timeout)
    if detached:
        options["detached"] = True
    more = without_none(id=how.get("id"), context=how.get("context"), options=options or None)
    return {"name": name, "arguments": dict(arguments or {}), **more}, _key(how.get("idempotency_key"))


def call(name: str, arguments: Mapping[str, Any] | None, how: How) -> Operation[Result]:
    """Make one call."""
    body, headers = _invoke(name, arguments, how)
    patience = how.get("timeout") or 0
    return Operation("POST", "/v1/invoke", Result.of, body=body, headers=headers, patience=patience, is_call=True)


def plan(name: str, arguments: Mapping[str, Any] | None, how: How) -> Operation[Plan]:
    """Say what would happen to a call."""
    return Operation("POST", "/v1/plan", Plan.of, body=_invoke(name, arguments, how)[0])


def submit(name: str, arguments: Mapping[str, Any] | None, how: How) -> Operation[Task]:
    """Make a call that goes on without its caller."""
    body, headers = _invoke(name, arguments, how, detached=True)
    return Operation("POST", "/v1/invoke", Task.of, body=body, headers=headers)


def batch(
    calls: Iterable[Call],
    *,
    strategy: str | None = None,
    continue_on_failure: bool | None = None,
    batch_id: str | None = None,
    idempotency_key: str | None = None,
    context: Context | None = None,
    options: Options | None = None,
) -> Operation[BatchResult]:
    """Make several calls, planned together."""
    more = without_none(
        strategy=strategy,
        continueOnFailure=continue_on_failure,
        batchId=batch_id,
        context=context,
        options=options,
    )
    body = {"calls": [one.to_json() for one in calls], **more}
    return Operation("POST", "/v1/batch", BatchResult.of, body=body, headers=_key(idempotency_key), is_call=True)


def tools(text: str | None, after: str | None, limit: int | None) -> Operation[Page[Object]]:
    """List tools."""
    return _get("/v1/tools", page_of("tools", _itself), text=text, after=after, limit=limit)


def tool(name: str) -> Operation[Object]:
    """Show one tool."""
    return _get(_path("/v1/tools/{}", name), _itself)


def search_tools(query: str, limit: int | None) -> Operation[list[Object]]:
    """Find tools by words."""
    body = {"query": query, **without_none(limit=limit)}
    return Operation("POST", "/v1/tools/search", lambda raw: [found["tool"] for found in raw["tools"]], body=body)


def definitions(dialect: Dialect, names: tuple[str, ...]) -> Operation[Definitions]:
    """List tools as a provider takes them."""
    return _get("/v1/definitions", Definitions.of, dialect=dialect, names=",".join(names) or None)


def me() -> Operation[Object]:
    """Show who the caller is."""
    return _get("/v1/me", _itself)


def task(task_id: str, wait: int | None = None) -> Operation[Task]:
    """Show one task, at the latest after `wait` seconds."""
    path = _path("/v1/tasks/{}", task_id)
    return Operation("GET", path, Task.of, params=without_none(wait=wait), patience=wait or 0)


def tasks(**which: Any) -> Operation[Page[Task]]:
    """List tasks."""
    is_open = {True: "true", False: "false", None: None}[which.pop("open")]
    return _get("/v1/tasks", page_of("tasks", Task.of), open=is_open, **which)


def cancel_task(task_id: str) -> Operation[Task]:
    """Cancel a task."""
    return Operation("DELETE", _path("/v1/tasks/{}", task_id), Task.of)


def approvals(state: str | None) -> Operation[Page[Approval]]:
    """List approvals."""
    return _get("/v1/approvals", page_of("approvals", Approval.of), state=state)


def approval(approval_id: str) -> Operation[Approval]:
    """Show one approval."""
    return _get(_path("/v1/approvals/{}", approval_id), Approval.of)


def _answer(approval_id: str, decision: str, **more: Any) -> Operation[Approval]:
    body = {"decision": decision, **without_none(**more)}
    return Operation("POST", _path("/v1/approvals/{}", approval_id), Approval.of, body=body)


def approve(approval_id: str, remember: Remember | None) -> Operation[Approval]:
    """Say yes."""
    return _answer(approval_id, "approve", remember=remember)


def deny(approval_id: str, reason: str | None) -> Operation[Approval]:
    """Say no."""
    return _answer(approval_id, "deny", reason=reason)


def edit(approval_id: str, arguments: Mapping[str, Any]) -> Operation[Approval]:
    """Change the arguments."""
    return _answer(approval_id, "edit", arguments=dict(arguments))


def running() -> Operation[list[Object]]:
    """List the calls that have no result yet."""
    return _get("/v1/executions/running", lambda raw: list(raw["executions"]))


def executions(**which: Any) -> Operation[Page[Object]]:
    """List the calls that were made."""
    return _get("/v1/executions", page_of("records", _itself), **which)


def execution(execution_id: str) -> Operation[Execution]:
    """Show one call."""
    return _get(_path("/v1/executions/{}", execution_id), Execution.of)


def cancel(kind: str, one: str, reason: str | None) -> Operation[bool]:
    """Cancel an execution or a batch."""
    path = _path("/v1/" + kind + "/{}/cancel", one)
    return Operation("POST", path, lambda raw: bool(raw["cancelled"]), body=without_none(reason=reason))


def output(handle: str, offset: int, length: int | None) -> Operation[bytes]:
    """Read a stored output."""
    return _get(_path("/v1/outputs/{}", handle), bytes, offset=offset, length=length)
