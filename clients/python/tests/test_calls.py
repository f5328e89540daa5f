"""Calls, batches, plans, tools: what comes back, and what is raised."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from haft_client import (
    ApprovalRequired,
    Call,
    CallTimeout,
    Conflict,
    Haft,
    InvalidRequest,
    NotFound,
    NotReachable,
    PermissionDenied,
    ToolFailed,
    Unauthenticated,
)

if TYPE_CHECKING:
    from conftest import Server


def test_a_call_gives_its_result_typed_and_raw(haft: Haft) -> None:
    result = haft.call("read_file", {"path": "README.md"}, id="mine")
    assert (result.ok, result.tool, result.text, result.call_id) == (True, "read_file", "# Waves\n", "mine")
    assert result.output["size"] == 8
    assert result.raw["metadata"]["executionId"] == result.execution_id
    seen = haft.executions.get(result.execution_id)
    assert seen.state == "ended"
    assert seen.result is not None
    assert seen.result.text == "# Waves\n"
    assert result.execution_id in {one["metadata"]["executionId"] for one in haft.executions.list(tool="read_file")}


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "code"),
    [
        ("read_file", {"path": "nope.md"}, ToolFailed, "EXECUTION_FAILED"),
        ("read_file", {"pat": "README.md"}, InvalidRequest, "VALIDATION_FAILED"),
        ("read_fil", {}, NotFound, "TOOL_NOT_FOUND"),
        ("write_file", {"path": "x.txt", "content": "x"}, ApprovalRequired, "CONFIRMATION_REQUIRED"),
    ],
)
def test_a_call_that_does_not_succeed_raises_what_it_is(
    haft: Haft, name: str, arguments: dict[str, str], kind: type[Exception], code: str
) -> None:
    with pytest.raises(kind) as raised:
        haft.call(name, arguments)
    error = raised.value
    assert error.code == code  # type: ignore[attr-defined]
    assert error.message in str(error)  # type: ignore[attr-defined]
    assert error.help  # type: ignore[attr-defined]
    assert error.result.tool == name  # type: ignore[attr-defined]


def test_problems_of_arguments_say_where(haft: Haft) -> None:
    with pytest.raises(InvalidRequest) as raised:
        haft.call("read_file", {"path": "README.md", "start_line": "x"})
    assert raised.value.problems[0]["pointer"] == "/start_line"


def test_a_question_names_its_approval(haft: Haft) -> None:
    with pytest.raises(ApprovalRequired) as raised:
        haft.call("write_file", {"path": "asked.txt", "content": "x"})
    assert haft.approvals.get(raised.value.approval_id).tool == "write_file"


@pytest.mark.usefixtures("jail")
def test_a_call_has_a_deadline_and_a_command_its_exit_code(haft: Haft) -> None:
    with pytest.raises(CallTimeout) as late:
        haft.call("run_command", {"command": "sleep 30"}, timeout=0.5)
    assert late.value.status == 408
    assert late.value.retryable
    with pytest.raises(ToolFailed) as failed:
        haft.call("run_command", {"command": "echo said; exit 3"})
    assert failed.value.data["exitCode"] == 3
    assert failed.value.result is not None
    assert "said" in failed.value.result.text


def test_a_batch_has_one_result_for_each_call_in_their_order(haft: Haft) -> None:
    batch_id = str(uuid.uuid4())
    calls = [
        Call("read_file", {"path": "README.md"}, id="one"),
        Call("nope", id="two"),
        Call("read_file", "no object", id="three"),
    ]
    batch = haft.batch(calls, batch_id=batch_id, continue_on_failure=True)
    assert [result.call_id for result in batch] == ["one", "two", "three"]
    assert [result.ok for result in batch] == [True, False, False]
    assert (batch.ok, batch.batch_id, len(batch), batch[0].text) == (False, batch_id, 3, "# Waves\n")
    assert batch.raw["summary"]["total"] == 3
    with pytest.raises(NotFound):
        batch[1].check()
    with pytest.raises(Conflict):
        haft.batch(calls, batch_id=batch_id)


@pytest.mark.usefixtures("jail")
def test_an_idempotency_key_has_its_effect_once(haft: Haft, server: Server) -> None:
    append = {"command": "echo x >> once.txt"}
    first = haft.call("run_command", append, idempotency_key="once", options={"writes": "live"})
    again = haft.call("run_command", append, idempotency_key="once", options={"writes": "live"})
    assert first.ok
    assert again.ok
    assert (server.work / "once.txt").read_text() == "x\n"
    with pytest.raises(Conflict):
        haft.call("run_command", {"command": "true"}, idempotency_key="once")


def test_a_plan_says_what_would_happen(haft: Haft, server: Server) -> None:
    assert haft.plan("read_file", {"path": "README.md"}).decision == "ready"
    plan = haft.plan("write_file", {"path": "planned.txt", "content": "x"})
    assert plan.decision == "needs_approval"
    assert plan.reason
    assert not (server.work / "planned.txt").exists()


def test_tools_are_listed_shown_and_found(haft: Haft) -> None:
    page = haft.tools(limit=2)
    assert len(page) == 2
    assert page.next is not None
    assert haft.tools(after=page.next, limit=1).items[0]["name"] > page.next
    assert haft.tool("read_file")["name"] == "read_file"
    assert haft.search_tools("read a file", limit=3)
    definitions = haft.definitions("openai-chat", "read_file")
    assert definitions.tools[0]["function"]["name"] == "read_file"
    assert definitions.unlisted > 0


def test_a_long_output_is_read_by_its_handle(haft: Haft) -> None:
    small = {"kind": "known", "limit": 100, "used": 0, "responseReserve": 0, "safetyMargin": 0}
    result = haft.call("inspect_tool", {"name": "read_file"}, options={"model": small})
    assert result.output_handle is not None
    whole = haft.read_output(result.output_handle)
    assert len(whole) > len(result.text)
    assert haft.read_output(result.output_handle, offset=2, length=10) == whole[2:12]


def test_a_key_has_its_rights_and_no_others(haft: Haft, person: Haft, server: Server) -> None:
    assert haft.me()["rights"] == ["invoke"]
    with pytest.raises(PermissionDenied):
        person.call("read_file", {"path": "README.md"})
    with Haft(server.url, "haft_wrong") as nobody, pytest.raises(Unauthenticated):
        nobody.tools()


def test_the_owner_needs_no_key_on_the_socket(server: Server) -> None:
    with Haft(f"unix:{server.socket}") as owner:
        assert owner.me()["agent"] == "owner"
        assert owner.call("read_file", {"path": "README.md"}).ok


def test_a_server_that_is_not_there_is_said() -> None:
    with Haft("http://127.0.0.1:9", "haft_x", retries=0) as client, pytest.raises(NotReachable) as raised:
        client.tools()
    assert raised.value.code == "NOT_REACHABLE"
    assert "haft serve" in raised.value.help


def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.delenv("HAFT_URL", raising=False)
    with pytest.raises(ValueError, match="HAFT_URL"):
        Haft()
    monkeypatch.setenv("HAFT_URL", server.url)
    monkeypatch.setenv("HAFT_KEY", server.caller)
    with Haft() as client:
        assert client.me()["rights"] == ["invoke"]
