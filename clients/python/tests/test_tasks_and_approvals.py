"""Tasks, and questions to people."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from haft_client import ApprovalDenied, ApprovalRequired, Conflict, Haft, NotFound, PermissionDenied, WaitTimeout

if TYPE_CHECKING:
    from conftest import Server


def asked(haft: Haft, path: str) -> str:
    with pytest.raises(ApprovalRequired) as raised:
        haft.call("write_file", {"path": path, "content": "x\n"})
    return raised.value.approval_id


def test_a_task_goes_on_and_keeps_its_result(haft: Haft) -> None:
    task = haft.tasks.submit("read_file", {"path": "README.md"}, id="mine")
    assert task.state == "pending"
    done = haft.tasks.wait(task.id, timeout=30)
    assert (done.state, done.is_over) == ("completed", True)
    assert done.result is not None
    assert done.result.check().text == "# Waves\n"
    assert haft.tasks.get(task.id).raw["callId"] == "mine"
    assert task.id in {one.id for one in haft.tasks.list(tool="read_file")}
    assert task.id not in {one.id for one in haft.tasks.list(open=True)}
    with pytest.raises(Conflict):
        haft.tasks.cancel(task.id)
    with pytest.raises(NotFound):
        haft.tasks.get("tsk_0")


@pytest.mark.usefixtures("jail")
def test_waiting_has_an_end_and_a_task_is_cancelled(haft: Haft) -> None:
    task = haft.tasks.submit("run_command", {"command": "sleep 60"})
    began = time.monotonic()
    with pytest.raises(WaitTimeout) as raised:
        haft.tasks.wait(task.id, timeout=0.7)
    assert 0.6 < time.monotonic() - began < 5
    assert isinstance(raised.value, TimeoutError)
    haft.tasks.cancel(task.id)
    assert haft.tasks.wait(task.id, timeout=30).state == "cancelled"


def test_a_yes_lets_the_same_call_run_once(haft: Haft, person: Haft, server: Server) -> None:
    approval_id = asked(haft, "approved.txt")
    question = person.approvals.get(approval_id)
    assert approval_id in {one.id for one in person.approvals.list()}
    assert (question.state, question.arguments["path"]) == ("open", "approved.txt")
    assert "approved.txt" in question.view
    assert question.offers[0]["kind"] == "exact_call"
    with pytest.raises(PermissionDenied):
        haft.approvals.approve(approval_id)
    assert person.approvals.approve(approval_id).state == "approved"
    with pytest.raises(Conflict):
        person.approvals.deny(approval_id)
    assert haft.call("write_file", {"path": "approved.txt", "content": "x\n"}).ok
    assert (server.work / "approved.txt").read_text() == "x\n"
    assert haft.approvals.get(approval_id).state == "used"


def test_a_no_has_a_reason_that_the_caller_reads(haft: Haft, person: Haft, server: Server) -> None:
    task = haft.tasks.submit("write_file", {"path": "denied.txt", "content": "x"})
    waiting = wait_for_question(haft, task.id)
    person.approvals.deny(waiting, reason="not on a Friday")
    done = haft.tasks.wait(task.id, timeout=30)
    assert done.result is not None
    with pytest.raises(ApprovalDenied, match="not on a Friday"):
        done.result.check()
    assert not (server.work / "denied.txt").exists()


def test_changed_arguments_are_asked_about_again(haft: Haft, person: Haft, server: Server) -> None:
    task = haft.tasks.submit("write_file", {"path": "draft.txt", "content": "x"})
    approval_id = wait_for_question(haft, task.id)
    assert person.approvals.edit(approval_id, {"path": "other.txt", "content": "y\n"}).state == "edited"
    again = wait_for_question(haft, task.id, other_than=approval_id)
    question = person.approvals.get(again)
    assert (question.raw["replaces"], question.arguments["path"]) == (approval_id, "other.txt")
    person.approvals.approve(again)
    assert haft.tasks.wait(task.id, timeout=30).state == "completed"
    assert (server.work / "other.txt").read_text() == "y\n"
    assert not (server.work / "draft.txt").exists()


def test_a_yes_is_remembered_as_offered(haft: Haft, person: Haft, server: Server) -> None:
    approval_id = asked(haft, "remembered.txt")
    answered = person.approvals.approve(approval_id, remember={"kind": "exact_call", "seconds": 60})
    assert answered.raw["grant"]["tool"] == "write_file"
    assert haft.call("write_file", {"path": "remembered.txt", "content": "x\n"}).ok
    (server.work / "remembered.txt").unlink()
    assert haft.call("write_file", {"path": "remembered.txt", "content": "x\n"}).ok, "without another question"


def test_an_answer_is_waited_for(haft: Haft, person: Haft) -> None:
    approval_id = asked(haft, "waited.txt")
    with pytest.raises(WaitTimeout):
        haft.approvals.wait(approval_id, timeout=0.2)
    answer = threading.Timer(0.5, lambda: person.approvals.approve(approval_id))
    answer.start()
    assert haft.approvals.wait(approval_id, timeout=30).state == "approved"
    answer.join()


def test_a_task_that_waits_for_a_person_is_watched_to_its_end(haft: Haft, person: Haft, server: Server) -> None:
    task = haft.tasks.submit("write_file", {"path": "watched.txt", "content": "x"})
    names = []
    with haft.tasks.events(task.id) as events:
        for event in events:
            names.append(event.name)
            if event.name == "task" and event.raw["state"] == "awaiting_approval":
                person.approvals.approve(event.raw["approvalId"])
    assert names.count("task") == 2
    assert names[-1] == "task"
    assert "tool:executed" in names
    assert haft.tasks.wait(task.id, timeout=30).state == "completed"
    assert (server.work / "watched.txt").exists()


def wait_for_question(haft: Haft, task_id: str, other_than: str | None = None) -> str:
    for _ in range(200):
        approval_id = haft.tasks.get(task_id).approval_id
        if approval_id not in (None, other_than):
            return str(approval_id)
        time.sleep(0.05)
    raise AssertionError("nobody was asked")
