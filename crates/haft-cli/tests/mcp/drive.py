"""The official Python SDK drives haft: list, changes of the list, call, progress, approvals through the client, cancel, tasks.

drive.py HAFT FOLDER stdio|http legacy|2026-07-28 [URL TOKEN]
"""

import asyncio
import pathlib
import subprocess
import sys
import time
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client

HAFT, FOLDER, WAY, MODE = sys.argv[1:5]
WORK = pathlib.Path(FOLDER) / "work"
PROGRESS = []


class Person:
    """Answers forms, and remembers what was asked."""

    def __init__(self):
        self.asked = []
        self.answer = {"decision": "approve"}

    async def __call__(self, context, params):
        self.asked.append(params.message)
        if self.answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=self.answer)


async def progress(progress, total, message):
    PROGRESS.append(message or "")


def code(result):
    return ((result.meta or {}).get("haft/error") or {}).get("code")


class AboutTask(types.RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


class TaskRequest(types.Request[AboutTask, str]):
    name_param = "taskId"


class Taken(types.Result):
    result_type: Literal["task"]
    task_id: str
    status: str
    poll_interval_ms: int


class AsItStands(types.Result):
    model_config = {**types.Result.model_config, "extra": "allow"}


class Tasks(ClientExtension):
    """The tasks extension, as a program would bring it along: the SDK has the seam, and no tasks of its own."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, person):
        self.person = person
        self.taken, self.seen = [], []
        self.cancels = False

    def claims(self):
        return [ResultClaim(result_type="task", model=Taken, resolve=self.resolve)]

    async def ask(self, session, method, **params):
        request = TaskRequest(method=method, params=AboutTask(**params))
        return await session.send_request(request, AsItStands)

    async def resolve(self, task, context):
        self.taken.append(task.task_id)
        for _ in range(400):
            now = (await self.ask(context.session, "tasks/get", task_id=task.task_id)).model_dump(by_alias=True)
            self.seen.append(now["status"])
            if now["status"] == "completed":
                return types.CallToolResult.model_validate(now["result"])
            if now["status"] in ("failed", "cancelled"):
                raise RuntimeError(now["status"])
            if now["status"] == "input_required":
                answers = {}
                for name, asked in now["inputRequests"].items():
                    answer = await self.person(None, types.ElicitRequestFormParams.model_validate(asked["params"]))
                    answers[name] = answer.model_dump(by_alias=True, exclude_none=True)
                await self.ask(context.session, "tasks/update", task_id=task.task_id, input_responses=answers)
            elif self.cancels:
                await self.ask(context.session, "tasks/cancel", task_id=task.task_id)
            await asyncio.sleep(0.05)
        raise AssertionError(f"it never ended: {self.seen}")


async def drive_tasks(client, person, tasks):
    person.answer = {"decision": "approve"}
    done = await client.call_tool("run_command", {"command": "sleep 2"})
    assert not done.is_error, done
    assert "input_required" in tasks.seen and "working" in tasks.seen, tasks.seen
    tasks.cancels, tasks.seen[:] = True, []
    try:
        await client.call_tool("run_command", {"command": "sleep 27"})
        raise AssertionError("it was not cancelled")
    except RuntimeError as ended:
        assert str(ended) == "cancelled", ended
    assert len(tasks.taken) == 2 and len(set(tasks.taken)) == 2, tasks.taken
    read = await client.call_tool("read_file", {"path": "notes.txt"})
    assert not read.is_error and len(tasks.taken) == 2, "what is quick is no task"


def elsewhere(*arguments):
    env = {"HOME": FOLDER, "PATH": "/usr/bin:/bin"}
    subprocess.run([HAFT, *arguments], env=env, cwd=WORK, check=True, capture_output=True)


async def drive_changes(client, heard):
    """Another process switches a tool off; the client hears of it."""

    async def names():
        page = await client.list_tools(cache_mode="bypass")
        return [tool.name for tool in page.tools]

    async def told(switch, there):
        elsewhere("tools", switch, "get_metrics")
        async with asyncio.timeout(20):
            await heard()
            while ("get_metrics" in await names()) != there:
                await asyncio.sleep(0.1)

    await told("disable", False)
    await told("enable", True)


async def drive(client, person):
    listed, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        listed += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert "read_file" in listed and listed == sorted(listed), listed

    read = await client.call_tool("read_file", {"path": "notes.txt"})
    assert not read.is_error and read.structured_content["content"] == "hello\n", read
    wrong = await client.call_tool("read_file", {"path": [7]})
    assert wrong.is_error and code(wrong) == "VALIDATION_FAILED", wrong

    new = {"path": f"{WAY}-{MODE}.txt", "content": "written"}
    person.answer = None
    denied = await client.call_tool("write_file", new)
    assert code(denied) == "CONFIRMATION_DENIED" and not (WORK / new["path"]).exists(), denied
    person.answer = {"decision": "approve"}
    written = await client.call_tool("write_file", new, progress_callback=progress)
    assert not written.is_error and (WORK / new["path"]).read_text() == "written", written
    assert len(person.asked) == 2 and "write_file" in person.asked[1], person.asked
    assert any("waiting for approval" in message for message in PROGRESS), PROGRESS

    resource = await client.read_resource("haft://tools/read_file")
    assert '"read_file"' in resource.contents[0].text

    before = time.monotonic()
    try:
        async with asyncio.timeout(2):
            await client.call_tool("run_command", {"command": "sleep 29"})
        raise AssertionError("it was not cancelled")
    except TimeoutError:
        pass
    again = await client.call_tool("read_file", {"path": "notes.txt"})
    assert not again.is_error and time.monotonic() - before < 20


async def main():
    person = Person()
    if WAY == "stdio":
        env = {"HOME": FOLDER, "PATH": "/usr/bin:/bin"}
        arguments = ["--set", "tools.approval.denylist=[]", "mcp", "--approvals", "client"]
        transport = StdioServerParameters(command=HAFT, args=arguments, cwd=str(WORK), env=env)
    else:
        url, token = sys.argv[5:7]
        web = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
        transport = streamable_http_client(url, http_client=web)
    told = asyncio.Queue()

    async def message(message):
        if isinstance(message, types.ToolListChangedNotification):
            told.put_nowait(message)

    more = {"elicitation_callback": person, "message_handler": message}
    async with Client(transport, mode=MODE, **more) as client:
        await drive(client, person)
        if MODE == "legacy":
            await drive_changes(client, told.get)
        else:
            async with client.listen(tools_list_changed=True) as changes:
                await drive_changes(client, changes.__anext__)
    if MODE != "legacy":
        tasks = Tasks(person)
        if WAY != "stdio":
            web = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
            transport = streamable_http_client(url, http_client=web)
        async with Client(transport, mode=MODE, extensions=[tasks], **more) as client:
            await drive_tasks(client, person, tasks)
    print("driven")


asyncio.run(main())
