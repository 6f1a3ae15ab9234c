"""The agent of `agent.py`, by hand from nodes: a guard measures each request, and a full window condenses first."""

from __future__ import annotations

from langchain_core.messages import BaseMessage  # noqa: TC002 - LangGraph reads a node's annotations
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - as above
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from parts import MAX_TOKENS, SYSTEM, chat_model, look_up, memory

from langchain_tiered_memory.integrations.nodes import (
    amodel_input,
    condense_node,
    context_node,
    guard_node,
    remember_node,
)
from langchain_tiered_memory.integrations.state import TieredState, zone_in

model = chat_model()
tools = [look_up]
call = {"model": model, "system": SYSTEM, "tools": tools, "max_tokens": MAX_TOKENS}


class State(MessagesState, TieredState):
    """The messages, and the nodes' own record."""


async def ask(state: State, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
    """Ask the model, with what the memory shows it."""
    return {"messages": [await model.bind_tools(tools).ainvoke(await amodel_input(memory, state, config))]}


builder = StateGraph(State)
builder.add_node("remember", remember_node(memory))
builder.add_node("guard", guard_node(memory, **call))
builder.add_node("condense", condense_node(memory))
builder.add_node("context", context_node(memory, **call))
builder.add_node("ask", ask)
builder.add_node("keep", remember_node(memory))
builder.add_node("tools", ToolNode(tools))
builder.add_edge(START, "remember")
builder.add_edge("remember", "guard")
builder.add_conditional_edges(
    "guard", zone_in, {"safe": "context", "warning": "context", "danger": "condense", "critical": "condense"}
)
builder.add_edge("condense", "context")
builder.add_edge("context", "ask")
builder.add_edge("ask", "keep")
builder.add_conditional_edges("keep", tools_condition, {"tools": "tools", END: END})
builder.add_edge("tools", "remember")

graph = builder.compile()
