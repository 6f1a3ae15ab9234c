"""From langmem's `SummarizationNode` to this memory: `python examples/migrate_langmem.py`.

langmem puts a running summary in front of the newest messages, under a second key of the state. Here one node makes the
request, and the state keeps a small record instead.
"""

from itertools import pairwise
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langmem.short_term import SummarizationNode

from langchain_tiered_memory import TieredMemory, TieredState, context_node, model_input, remember_node

MODEL = init_chat_model("openai:gpt-5-mini")


class Before(MessagesState, total=False):
    """langmem's state: the running summary, and what the model is shown."""

    context: dict[str, Any]
    shown: list[AnyMessage]


class After(MessagesState, TieredState):
    """The same messages, with the memory's one key."""


def answered(state: Before) -> dict[str, list[BaseMessage]]:
    """Before: the model is shown langmem's list."""
    return {"messages": [MODEL.invoke(state["shown"])]}


def main() -> None:
    """The same thread, before and after."""
    checkpointer = InMemorySaver()
    fred = RunnableConfig(configurable={"thread_id": "fred"})
    old = StateGraph(Before)
    old.add_node(
        "summarise", SummarizationNode(model=MODEL, max_tokens=4000, output_messages_key="shown", name="summarise")
    )
    old.add_node("answer", answered)
    old.add_edge(START, "summarise")
    old.add_edge("summarise", "answer")
    old.compile(checkpointer=checkpointer).invoke({"messages": [HumanMessage("The quay needs oak.")]}, fred)

    with TieredMemory.open("migrate_langmem.db", model=MODEL) as memory:

        def remembered(state: After, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
            return {"messages": [MODEL.invoke(model_input(memory, state, config))]}

        new = StateGraph(After)
        new.add_node("context", context_node(memory, model=MODEL, max_tokens=4000))
        new.add_node("answer", remembered)
        new.add_node("keep", remember_node(memory))
        for step, following in pairwise([START, "context", "answer", "keep"]):
            new.add_edge(step, following)
        graph = new.compile(checkpointer=checkpointer)
        answer = graph.invoke({"messages": [HumanMessage("What does the quay need?")]}, fred)
        print(answer["messages"][-1].text)
        print(len(memory.session("fred").messages()), "messages are kept")


if __name__ == "__main__":
    main()
