"""An agent of LangGraph whose tools run in haft, over HTTP. Needs HAFT_URL, HAFT_KEY and OPENAI_API_KEY."""

from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from haft_client import Haft
from haft_client.tools import langchain_tools

with Haft() as haft:
    tools = langchain_tools(haft, "read_file", "search_files")
    model = ChatOpenAI(model="gpt-5").bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    end = graph.compile().invoke({"messages": [("user", "What does the README say?")]})
print(end["messages"][-1].content)
