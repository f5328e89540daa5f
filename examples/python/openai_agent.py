"""An agent with OpenAI's Chat Completions whose tools run in haft. Needs HAFT_URL, HAFT_KEY and OPENAI_API_KEY."""

from openai import OpenAI

from haft_client import Haft
from haft_client.tools import openai_tools

model = OpenAI()
messages = [{"role": "user", "content": "What does the README say?"}]
with Haft() as haft:
    tools = openai_tools(haft, "read_file", "search_files")
    while True:
        answer = model.chat.completions.create(model="gpt-5", messages=messages, tools=tools.definitions)
        said = answer.choices[0].message
        messages.append(said)
        if not said.tool_calls:
            break
        messages += tools.run(said.tool_calls)
print(said.content)
