"""The agent of langgraph_agent.py with haft as its MCP server: no client of haft's is needed.

Needs HAFT_URL, HAFT_KEY and OPENAI_API_KEY.
"""

import asyncio
import os

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

SERVER = {
    "transport": "streamable_http",
    "url": os.environ["HAFT_URL"] + "/mcp",
    "headers": {"Authorization": "Bearer " + os.environ["HAFT_KEY"]},
}


async def main() -> None:
    tools = await MultiServerMCPClient({"haft": SERVER}).get_tools()
    model = ChatOpenAI(model="gpt-5").bind_tools(tools)

    async def ask(state: MessagesState) -> dict:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    end = await graph.compile().ainvoke({"messages": [("user", "What does the README say?")]})
    print(end["messages"][-1].content)


asyncio.run(main())
