"""From `trim_messages` in a graph to this memory: `python examples/migrate_trim_messages.py`.

Trimming forgets: what fell out of the window cannot be found again. The graph keeps its state and its checkpointer; two
nodes and one line change.
"""

from itertools import pairwise

from langchain.chat_models import init_chat_model
from langchain_core.messages import BaseMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory import TieredMemory, TieredState, context_node, model_input, remember_node

MODEL = init_chat_model("openai:gpt-5-mini")


def trimmed(state: MessagesState) -> dict[str, list[BaseMessage]]:
    """Before: the newest messages that fit."""
    shown = trim_messages(
        state["messages"], max_tokens=4000, token_counter=count_tokens_approximately, start_on="human"
    )
    return {"messages": [MODEL.invoke(shown)]}


class State(MessagesState, TieredState):
    """After: the same state, with the memory's one key beside the messages."""


def main() -> None:
    """The same thread, before and after."""
    checkpointer = InMemorySaver()
    erin = RunnableConfig(configurable={"thread_id": "erin"})
    builder = StateGraph(MessagesState)
    builder.add_node("answer", trimmed)
    builder.add_edge(START, "answer")
    builder.compile(checkpointer=checkpointer).invoke({"messages": [HumanMessage("I sail to Hollin.")]}, erin)

    with TieredMemory.open("migrate_trim_messages.db") as memory:

        def remembered(state: State, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
            return {"messages": [MODEL.invoke(model_input(memory, state, config))]}

        new = StateGraph(State)
        new.add_node("context", context_node(memory, model=MODEL, max_tokens=4000))  # it remembers what is new, too
        new.add_node("answer", remembered)
        new.add_node("keep", remember_node(memory))
        for step, following in pairwise([START, "context", "answer", "keep"]):
            new.add_edge(step, following)
        graph = new.compile(checkpointer=checkpointer)
        answer = graph.invoke({"messages": [HumanMessage("Where do I sail?")]}, erin)
        print(answer["messages"][-1].text)
        print(len(memory.session("erin").messages()), "messages are kept")


if __name__ == "__main__":
    main()
