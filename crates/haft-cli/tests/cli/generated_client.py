"""Makes calls with the client that openapi-python-client made of the document."""

import os

from haft_client import AuthenticatedClient
from haft_client.api.calls import post_invoke, post_plan
from haft_client.api.executions import get_executions_id
from haft_client.api.tools import get_tools_name
from haft_client.models import Invoke, Problem, ToolResult

client = AuthenticatedClient(base_url=os.environ["HAFT_URL"], token=os.environ["HAFT_KEY"])


def call(name, arguments):
    body = {"name": name, "arguments": arguments, "options": {"timeout": "PT30S", "priority": 7}}
    return Invoke.from_dict(body)


read = post_invoke.sync(client=client, body=call("read_file", {"path": "note.txt"}))
assert isinstance(read, ToolResult), read
assert read.status == "Success", read
assert read.metadata.attempts == 1, read
print("read:", read.content[0].to_dict()["text"])

execution = get_executions_id.sync(str(read.metadata.execution_id), client=client)
assert execution.record.tool == "read_file", execution
print("recorded:", execution.record.status)

write = call("write_file", {"path": "new.txt", "content": "hello"})
plan = post_plan.sync(client=client, body=write)
print("plan:", plan.decision)
waiting = post_invoke.sync_detailed(client=client, body=write)
assert waiting.status_code == 202, waiting
assert isinstance(waiting.parsed, ToolResult), waiting
print("asked:", waiting.parsed.error.code)

absent = get_tools_name.sync("no_such_tool", client=client)
assert isinstance(absent, Problem), absent
print("problem:", absent.code)
