"""An agent with Anthropic's Messages whose tools run in haft. Needs HAFT_URL, HAFT_KEY and ANTHROPIC_API_KEY."""

from anthropic import Anthropic

from haft_client import Haft
from haft_client.tools import anthropic_tools

model = Anthropic()
messages = [{"role": "user", "content": "What does the README say?"}]
with Haft() as haft:
    tools = anthropic_tools(haft, "read_file", "search_files")
    while True:
        said = model.messages.create(
            model="claude-sonnet-5", max_tokens=4096, messages=messages, tools=tools.definitions
        )
        messages.append({"role": "assistant", "content": said.content})
        if said.stop_reason != "tool_use":
            break
        messages += tools.run(said.content)
print(said.content[0].text)
