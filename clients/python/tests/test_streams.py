"""Events as they happen, cancelling, and going on after a connection broke."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from broken_line import BrokenLine

from haft_client import Call, CallCancelled, Haft, NotFound, NotReachable, ToolFailed

if TYPE_CHECKING:
    from conftest import Server

pytestmark = pytest.mark.usefixtures("jail")


def ended(haft: Haft, execution_id: str) -> str:
    """How a call ended, which may take a moment."""
    for _ in range(100):
        try:
            execution = haft.executions.get(execution_id)
        except NotFound:
            execution = None
        if execution is not None and execution.state == "ended":
            return str(execution.raw["record"]["status"])
        time.sleep(0.1)
    raise AssertionError(f"{execution_id} did not end")


def test_a_stream_has_events_as_they_happen_and_then_the_result(haft: Haft) -> None:
    times = {}
    with haft.stream("run_command", {"command": "echo a; sleep 1; echo b"}) as stream:
        for event in stream:
            times[event.data.get("chunk", event.name)] = time.monotonic()
            assert event.execution_id == stream.execution_id
        result = stream.result()
    assert result.text == "a\nb\n"
    assert times["b\n"] - times["a\n"] > 0.5, "they came one by one"
    assert next(iter(times)) == "tool:executing"
    assert list(times)[-1] == "tool:executed"


def test_a_stream_of_a_call_that_fails_raises_with_its_result(haft: Haft) -> None:
    stream = haft.stream("run_command", {"command": "exit 4"})
    with pytest.raises(ToolFailed):
        stream.result()
    with pytest.raises(NotFound):
        haft.stream("nope").result()


def test_closing_a_stream_cancels_its_call(haft: Haft) -> None:
    with haft.stream("run_command", {"command": "echo a; sleep 60"}) as stream:
        next(event for event in stream if event.name == "tool:output")
        assert stream.execution_id in {one["executionId"] for one in haft.executions.running()}
    assert list(stream) == []
    assert ended(haft, stream.execution_id) == "Cancelled"


def test_a_call_is_cancelled_from_elsewhere(haft: Haft) -> None:
    with haft.stream("run_command", {"command": "echo a; sleep 60"}) as stream:
        next(event for event in stream if event.name == "tool:output")
        assert stream.cancel("not needed any more")
        with pytest.raises(CallCancelled, match="not needed any more"):
            stream.result()
    assert not haft.executions.cancel(stream.execution_id), "it is over"


def test_a_call_is_watched_by_its_id(haft: Haft) -> None:
    execution_id = str(uuid.uuid4())
    command = {"command": "echo a; sleep 1; echo b"}
    call = threading.Thread(target=lambda: haft.call("run_command", command, execution_id=execution_id))
    call.start()
    while execution_id not in {one["executionId"] for one in haft.executions.running()}:
        time.sleep(0.02)
    with haft.executions.events(execution_id) as watched:
        names = [event.name for event in watched]
    call.join()
    assert names[0] == "tool:executing"
    assert names[-1] == "tool:executed"
    with haft.executions.events(execution_id, after="1") as rest:
        assert next(rest).name == names[2], "it goes on after the event that was seen last"


def test_a_batch_is_watched_and_cancelled_by_its_id(haft: Haft) -> None:
    batch_id = str(uuid.uuid4())
    results = []
    calls = [Call("run_command", {"command": "echo a; sleep 60"})]
    batch = threading.Thread(target=lambda: results.append(haft.batch(calls, batch_id=batch_id)))
    batch.start()
    while batch_id not in {one.get("batchId") for one in haft.executions.running()}:
        time.sleep(0.02)
    with haft.batches.events(batch_id) as events:
        next(event for event in events if event.name == "tool:output")
        assert haft.batches.cancel(batch_id)
        names = [event.name for event in events]
    batch.join()
    assert names[-1] == "tool:batch-complete"
    assert results[0][0].status == "Cancelled"


def test_all_calls_of_the_tenant_are_watched(haft: Haft) -> None:
    with haft.events() as events:
        caller = threading.Timer(0.3, lambda: haft.call("read_file", {"path": "README.md"}, id="seen"))
        caller.start()
        assert next(event for event in events if event.raw.get("tool") == "read_file").name == "tool:executing"
        caller.join()
        assert events.last_id is not None


def test_a_stream_goes_on_after_its_connection_broke(haft: Haft, server: Server) -> None:
    task = haft.tasks.submit("run_command", {"command": "for i in 1 2 3 4 5 6; do echo $i; sleep 0.2; done"})
    with BrokenLine(server.url) as line, Haft(line.url, server.caller) as client:
        line.cut_after(900, times=2)
        with client.tasks.events(task.id) as stream:
            chunks = [event.data["chunk"] for event in stream if event.name == "tool:output"]
        assert line.cuts == 2, "the connection broke"
    assert "".join(chunks) == "1\n2\n3\n4\n5\n6\n", "nothing is missing, and nothing comes twice"


def test_a_stream_goes_on_after_the_server_was_restarted(own_server: Server) -> None:
    with Haft(own_server.url, own_server.caller) as haft, Haft(own_server.url, own_server.answerer) as person:
        task = haft.tasks.submit("write_file", {"path": "late.txt", "content": "x"})
        with haft.tasks.events(task.id) as events:
            waiting = next(event for event in events if event.name == "task")
            assert own_server.stop() == 0
            own_server.start(own_server.url.removeprefix("http://"))
            person.approvals.approve(waiting.raw["approvalId"])
            names = [event.name for event in events]
        assert names[-2:] == ["tool:executed", "task"]
        assert haft.tasks.get(task.id).state == "completed"
    assert (own_server.work / "late.txt").exists()


def test_a_call_whose_connection_broke_still_has_its_one_result(haft: Haft, server: Server) -> None:
    with BrokenLine(server.url) as line, Haft(line.url, server.caller) as client:
        line.cut_after(700, times=1)
        with client.stream("run_command", {"command": "echo a; sleep 60"}) as stream, pytest.raises(CallCancelled):
            stream.result()
        assert line.cuts == 1
    assert ended(haft, stream.execution_id) == "Cancelled", "haft cancels a call whose caller went away"


def test_a_call_that_got_no_answer_is_not_sent_again(server: Server) -> None:
    with BrokenLine(server.url) as line, Haft(line.url, server.caller) as client:
        line.cut_after(0, times=100)
        with pytest.raises(NotReachable):
            client.call("read_file", {"path": "README.md"})
        assert line.connections == 1
        with pytest.raises(NotReachable):
            client.stream("read_file", {"path": "README.md"}).result()
        assert line.connections == 2
        with pytest.raises(NotReachable):
            client.tools()
        assert line.connections == 5, "a GET is: twice, here"
