"""A supervisor that hands work to two sub-agents: `python examples/supervisor.py`.

Each sub-agent has a track of its own. A scope gives it a small, read-only sight of the supervisor's conversation: the
goal, pins, and what answers its question.
"""

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware
from langchain_tiered_memory.types import Scope

MODEL = "openai:gpt-5-mini"


def specialist(memory: TieredMemory, name: str, duty: str) -> BaseTool:
    """A sub-agent as a tool of the supervisor."""
    memory_of_its_own = TieredMemoryMiddleware(memory, track=name, scope=Scope(sight_tokens=800))
    agent = create_agent(MODEL, [], system_prompt=duty, middleware=[memory_of_its_own], name=name)

    @tool(name, description=duty)
    def ask(task: str, config: RunnableConfig) -> str:
        answer = agent.invoke({"messages": [HumanMessage(task)]}, config)
        return str(answer["messages"][-1].text)

    return ask


def main() -> None:
    """One request that needs both."""
    with TieredMemory.open("supervisor.db") as memory:
        team = [
            specialist(memory, "permits", "Find out which permits a building needs."),
            specialist(memory, "costs", "Estimate what a building costs."),
        ]
        supervisor = create_agent(MODEL, team, middleware=[TieredMemoryMiddleware(memory)])
        config = RunnableConfig(configurable={"thread_id": "quay"})
        wish = "Build the quay in Bergen for less than 40,000 EUR: which permits, which costs?"
        answer = supervisor.invoke({"messages": [HumanMessage(wish)]}, config)
        print(answer["messages"][-1].text)
        session = memory.session("quay")
        for track in session.tracks():
            print(track, len(memory.session("quay", track=track).messages()), "messages")


if __name__ == "__main__":
    main()
