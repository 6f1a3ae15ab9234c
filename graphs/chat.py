"""A chat: remember, decide the view, answer, remember the answer, move what is old out of the state."""

from __future__ import annotations

from langchain_core.messages import BaseMessage  # noqa: TC002 - LangGraph reads a node's annotations
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - as above
from langgraph.graph import START, MessagesState, StateGraph
from parts import MAX_TOKENS, SYSTEM, chat_model, memory

from langchain_tiered_memory.integrations.nodes import amodel_input, context_node, evict_node, remember_node
from langchain_tiered_memory.integrations.state import TieredState

model = chat_model()


class State(MessagesState, TieredState):
    """The messages, and the nodes' own record."""


async def answer(state: State, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
    """Ask the model, with what the memory shows it."""
    return {"messages": [await model.ainvoke(await amodel_input(memory, state, config))]}


builder = StateGraph(State)
builder.add_node("remember", remember_node(memory))
builder.add_node("context", context_node(memory, model=model, system=SYSTEM, max_tokens=MAX_TOKENS))
builder.add_node("answer", answer)
builder.add_node("keep", remember_node(memory))
builder.add_node("evict", evict_node(memory, keep_messages=20, at_messages=40))
builder.add_edge(START, "remember")
builder.add_edge("remember", "context")
builder.add_edge("context", "answer")
builder.add_edge("answer", "keep")
builder.add_edge("keep", "evict")

graph = builder.compile()
