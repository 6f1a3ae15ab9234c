"""From `SummarizationMiddleware` to this memory: `python examples/migrate_summarization_middleware.py`.

The old middleware rewrites the state: what it summarised is gone. A thread that exists is brought over from its
LangGraph checkpoint, its summary message included.
"""

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware, from_langgraph, import_history

MODEL = "openai:gpt-5-mini"


def main() -> None:
    """One turn with the old middleware, the move, one turn with the new one, on the same thread."""
    checkpointer = InMemorySaver()  # yours, such as PostgresSaver
    dana = RunnableConfig(configurable={"thread_id": "dana"})
    before = create_agent(
        MODEL,
        [],
        middleware=[SummarizationMiddleware(MODEL, trigger=("tokens", 4000), keep=("messages", 20))],
        checkpointer=checkpointer,
    )
    before.invoke({"messages": [HumanMessage("The crane in hall 4 jams.")]}, dana)

    with TieredMemory.open("migrate_summarization_middleware.db", model=MODEL) as memory:
        import_history(memory.session("dana"), from_langgraph(checkpointer, dana))
        after = create_agent(
            MODEL, [], middleware=[TieredMemoryMiddleware(memory, tools=True)], checkpointer=checkpointer
        )
        answer = after.invoke({"messages": [HumanMessage("What is wrong in hall 4?")]}, dana)
        print(answer["messages"][-1].text)
        print(len(memory.session("dana").messages()), "messages are kept")


if __name__ == "__main__":
    main()
