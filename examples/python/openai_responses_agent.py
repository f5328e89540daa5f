"""An agent with OpenAI's Responses whose tools run in haft. Needs HAFT_URL, HAFT_KEY and OPENAI_API_KEY."""

from openai import OpenAI

from haft_client import Haft
from haft_client.tools import openai_responses_tools

model = OpenAI()
messages = [{"role": "user", "content": "What does the README say?"}]
with Haft() as haft:
    tools = openai_responses_tools(haft, "read_file", "search_files")
    while True:
        answer = model.responses.create(model="gpt-5", input=messages, tools=tools.definitions)
        results = tools.run(answer.output)
        if not results:
            break
        messages += [*answer.output, *results]
print(answer.output_text)
