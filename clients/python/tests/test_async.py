"""`AsyncHaft`: the same with asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from broken_line import BrokenLine

from haft_client import ApprovalRequired, AsyncHaft, Call, CallCancelled, Haft, NotReachable, WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Server

    Run = Callable[[Callable[[AsyncHaft], Any]], Any]


def test_calls_batches_and_lists(run_async: Run) -> None:
    async def test(haft: AsyncHaft) -> None:
        calls = [haft.call("read_file", {"path": "README.md"}) for _ in range(5)]
        assert {result.text for result in await asyncio.gather(*calls)} == {"# Waves\n"}
        batch = await haft.batch([Call("read_file", {"path": "README.md"}), Call("nope")], continue_on_failure=True)
        assert [result.ok for result in batch] == [True, False]
        assert (await haft.plan("read_file", {"path": "README.md"})).decision == "ready"
        assert (await haft.tools(limit=1)).items
        assert (await haft.tool("read_file"))["name"] == "read_file"
        assert await haft.search_tools("read a file")
        assert (await haft.me())["rights"] == ["invoke"]
        assert (await haft.executions.list(tool="read_file", limit=1)).items
        handle = await haft.call(
            "inspect_tool",
            {"name": "read_file"},
            options={"model": {"kind": "known", "limit": 100, "used": 0, "responseReserve": 0, "safetyMargin": 0}},
        )
        assert handle.output_handle is not None
        assert await haft.read_output(handle.output_handle)

    run_async(test)


def test_a_question_is_answered_while_a_task_waits(run_async: Run, server: Server) -> None:
    async def test(haft: AsyncHaft) -> None:
        with pytest.raises(ApprovalRequired):
            await haft.call("write_file", {"path": "alone.txt", "content": "x"})
        task = await haft.tasks.submit("write_file", {"path": "async.txt", "content": "x"})
        async with AsyncHaft(server.url, server.answerer) as person, haft.tasks.events(task.id) as events:
            async for event in events:
                if event.name == "task" and event.raw["state"] == "awaiting_approval":
                    approval_id = event.raw["approvalId"]
                    with pytest.raises(WaitTimeout):
                        await haft.approvals.wait(approval_id, timeout=0.1)
                    await person.approvals.approve(approval_id)
                    assert (await haft.approvals.wait(approval_id, timeout=10)).state in ("approved", "used")
        assert (await haft.tasks.wait(task.id, timeout=30)).state == "completed"

    run_async(test)
    assert (server.work / "async.txt").exists()


@pytest.mark.usefixtures("jail")
def test_a_stream_and_its_result(run_async: Run) -> None:
    async def test(haft: AsyncHaft) -> None:
        async with haft.stream("run_command", {"command": "echo a; sleep 0.2; echo b"}) as stream:
            chunks = [event.data["chunk"] async for event in stream if event.name == "tool:output"]
            assert (await stream.result()).text == "a\nb\n"
        assert "".join(chunks) == "a\nb\n"
        async with haft.stream("run_command", {"command": "echo a; sleep 60"}) as stream:
            async for event in stream:
                if event.name == "tool:output":
                    assert await stream.cancel("enough")
            with pytest.raises(CallCancelled, match="enough"):
                await stream.result()

    run_async(test)


@pytest.mark.usefixtures("jail")
def test_cancelling_the_task_of_asyncio_cancels_the_call(run_async: Run, haft: Haft) -> None:
    async def test(client: AsyncHaft) -> str:
        call = asyncio.create_task(client.call("run_command", {"command": "sleep 61"}))
        while not (mine := [one for one in await client.executions.running() if one["tool"] == "run_command"]):
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        execution_id = str(mine[0]["executionId"])
        while (await client.executions.get(execution_id)).state == "running":
            await asyncio.sleep(0.02)
        return execution_id

    execution_id = run_async(test)
    assert haft.executions.get(execution_id).raw["record"]["status"] == "Cancelled"


@pytest.mark.usefixtures("jail")
def test_a_stream_goes_on_after_its_connection_broke(run_async: Run, server: Server) -> None:
    async def test(haft: AsyncHaft) -> None:
        task = await haft.tasks.submit("run_command", {"command": "for i in 1 2 3 4; do echo $i; sleep 0.2; done"})
        with BrokenLine(server.url) as line:
            line.cut_after(900, times=1)
            async with AsyncHaft(line.url, server.caller) as client, client.tasks.events(task.id) as events:
                chunks = [event.data["chunk"] async for event in events if event.name == "tool:output"]
            assert line.cuts == 1
            line.cut_after(0, times=100)
            async with AsyncHaft(line.url, server.caller) as client:
                with pytest.raises(NotReachable):
                    await client.call("read_file", {"path": "README.md"})
        assert "".join(chunks) == "1\n2\n3\n4\n"

    run_async(test)


def test_both_clients_can_do_the_same() -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    from haft_client import async_groups, async_streams, groups, streams

    assert public(Haft) == public(AsyncHaft)
    for name in ("Tasks", "Approvals", "Executions", "Batches"):
        assert public(getattr(groups, name)) == public(getattr(async_groups, f"Async{name}")), name
    for name in ("EventStream", "CallStream"):
        assert public(getattr(streams, name)) == public(getattr(async_streams, f"Async{name}")), name
