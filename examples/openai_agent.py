"""An agent that keeps the whole conversation and sends a request that fits: `python examples/openai_agent.py`."""

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware


@tool
def look_up(order: str) -> str:
    """Look up an order in the register."""
    return f"Order {order}: shipped, due on Monday."


def main() -> None:
    """Two turns of one conversation, then what was kept of it."""
    # model=... lets a model write the summaries; without it the built-in rules do, which need no key.
    with TieredMemory.open("openai_agent.db", model="openai:gpt-5-mini") as memory:
        agent = create_agent(
            "openai:gpt-5-mini",
            [look_up],
            # Put the memory last. tools=True adds `recall`, `expand` and `pin` to the agent's own tools.
            middleware=[TieredMemoryMiddleware(memory, tools=True)],
        )
        alice = RunnableConfig(configurable={"thread_id": "alice"})  # the thread is the session
        for said in ("When is order 4711 due?", "And which order was that?"):
            answer = agent.invoke({"messages": [HumanMessage(said)]}, alice)
            print(f"> {said}\n{answer['messages'][-1].text}")
        print(len(memory.session("alice").messages()), "messages are kept")


if __name__ == "__main__":
    main()
