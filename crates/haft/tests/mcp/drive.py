"""The official Python SDK drives haft: list, call, progress, approvals through the client, cancel.

drive.py HAFT FOLDER stdio|http legacy|2026-07-28 [URL TOKEN]
"""

import asyncio
import pathlib
import sys
import time

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

HAFT, FOLDER, WAY, MODE = sys.argv[1:5]
WORK = pathlib.Path(FOLDER) / "work"
PROGRESS = []


class Person:
    """Answers forms, and remembers what was asked."""

    def __init__(self):
        self.asked = []
        self.answer = {"approve": True}

    async def __call__(self, context, params):
        self.asked.append(params.message)
        if self.answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content=self.answer)


async def progress(progress, total, message):
    PROGRESS.append(message or "")


def code(result):
    return ((result.meta or {}).get("haft/error") or {}).get("code")


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
    wrong = await client.call_tool("read_file", {"path": 7})
    assert wrong.is_error and code(wrong) == "VALIDATION_FAILED", wrong

    new = {"path": f"{WAY}-{MODE}.txt", "content": "written"}
    person.answer = None
    denied = await client.call_tool("write_file", new)
    assert code(denied) == "CONFIRMATION_DENIED" and not (WORK / new["path"]).exists(), denied
    person.answer = {"approve": True}
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
    async with Client(transport, mode=MODE, elicitation_callback=person) as client:
        await drive(client, person)
    print("driven")


asyncio.run(main())
