"""What a client does with tasks, approvals, executions and batches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from . import _operations as ops
from ._following import Source, is_end_of_batch, is_end_of_call, is_end_of_task
from ._waiting import Deadline
from .streams import EventStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack

    from ._json import Object
    from .client import Haft
    from .models import Approval, Execution, Page, Task
    from .options import How, Remember


class Tasks:
    """Calls that go on without their caller."""

    def __init__(self, client: Haft) -> None:
        """Use `client.tasks`."""
        self._client = client

    def submit(self, name: str, arguments: Mapping[str, Any] | None = None, **how: Unpack[How]) -> Task:
        """Make a call, and return its task at once."""
        return self._client._send(ops.submit(name, arguments, how))

    def get(self, task_id: str) -> Task:
        """Return a task as it stands, with its result once it has one."""
        return self._client._send(ops.task(task_id))

    def list(
        self,
        *,
        state: str | None = None,
        open: bool | None = None,  # noqa: A002
        tool: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Page[Task]:
        """List tasks, newest first. `open` leaves out those that are over."""
        return self._client._send(ops.tasks(state=state, open=open, tool=tool, after=after, limit=limit))

    def wait(self, task_id: str, *, timeout: float | None = None) -> Task:
        """Wait until a task is over, also for a person who has to approve it; raise `WaitTimeout` where it is not."""
        deadline = Deadline(f"Task {task_id} is not over", timeout)
        while True:
            task = self._client._send(ops.task(task_id, deadline.seconds(ops.LONGEST_WAIT)))
            if task.is_over:
                return task
            time.sleep(deadline.pause(task.poll_after if task.state == "awaiting_approval" else 0))

    def cancel(self, task_id: str) -> Task:
        """Cancel a task."""
        return self._client._send(ops.cancel_task(task_id))

    def events(self, task_id: str, *, after: str | None = None) -> EventStream:
        """Watch a task to its end, also while it waits for a person. The last event is `task`."""
        return EventStream(self._client._open, Source(ops.events_path("tasks", task_id), is_end_of_task), after)


class Approvals:
    """Questions to people, and their answers. Answering needs a key with the right `approve`."""

    def __init__(self, client: Haft) -> None:
        """Use `client.approvals`."""
        self._client = client

    def list(self, *, state: str | None = None) -> Page[Approval]:
        """List the questions that wait for an answer, oldest first; or those in another state."""
        return self._client._send(ops.approvals(state))

    def get(self, approval_id: str) -> Approval:
        """Return one question."""
        return self._client._send(ops.approval(approval_id))

    def approve(self, approval_id: str, *, remember: Remember | None = None) -> Approval:
        """Say yes. `remember` takes the `kind` of one of the question's offers."""
        return self._client._send(ops.approve(approval_id, remember))

    def deny(self, approval_id: str, *, reason: str | None = None) -> Approval:
        """Say no, with a reason that the model reads."""
        return self._client._send(ops.deny(approval_id, reason))

    def edit(self, approval_id: str, arguments: Mapping[str, Any]) -> Approval:
        """Change the arguments. haft plans the call with them and asks again."""
        return self._client._send(ops.edit(approval_id, arguments))

    def wait(self, approval_id: str, *, timeout: float | None = None) -> Approval:
        """Wait until a question is answered or expires; raise `WaitTimeout` where it is not."""
        deadline = Deadline(f"Nobody answered {approval_id}", timeout)
        while True:
            approval = self.get(approval_id)
            if approval.state != "open":
                return approval
            time.sleep(deadline.pause(0.5))


class Executions:
    """Calls that were made, and those that run."""

    def __init__(self, client: Haft) -> None:
        """Use `client.executions`."""
        self._client = client

    def running(self) -> list[Object]:
        """List the calls that have no result yet, oldest first."""
        return self._client._send(ops.running())

    def list(
        self,
        *,
        tool: str | None = None,
        agent: str | None = None,
        batch: str | None = None,
        status: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> Page[Object]:
        """List the records of calls that have ended, newest first."""
        which = {"tool": tool, "agent": agent, "batch": batch, "status": status, "after": after, "limit": limit}
        return self._client._send(ops.executions(**which))

    def get(self, execution_id: str) -> Execution:
        """Return one call: its record and its result."""
        return self._client._send(ops.execution(execution_id))

    def cancel(self, execution_id: str, reason: str | None = None) -> bool:
        """Cancel a call; say whether it was still running."""
        return self._client._send(ops.cancel("executions", execution_id, reason))

    def events(self, execution_id: str, *, after: str | None = None) -> EventStream:
        """Watch a call from its beginning to its end. Closing this stream does not cancel the call."""
        source = Source(ops.events_path("executions", execution_id), is_end_of_call)
        return EventStream(self._client._open, source, after)


class Batches:
    """Batches that run, by the `batch_id` that they were sent with."""

    def __init__(self, client: Haft) -> None:
        """Use `client.batches`."""
        self._client = client

    def cancel(self, batch_id: str, reason: str | None = None) -> bool:
        """Cancel a batch with all its calls; say whether it was still running."""
        return self._client._send(ops.cancel("batches", batch_id, reason))

    def events(self, batch_id: str, *, after: str | None = None) -> EventStream:
        """Watch a batch from its beginning to its end. Closing this stream does not cancel the batch."""
        return EventStream(self._client._open, Source(ops.events_path("batches", batch_id), is_end_of_batch), after)
