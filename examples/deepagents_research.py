"""deepagents with this memory in the main agent and in a sub-agent: `python examples/deepagents_research.py`."""

from typing import Any

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware


def remembering(memory: TieredMemory) -> AgentMiddleware[Any, Any]:
    """This memory under the name of deepagents' own summarisation, whose place it takes."""
    return TieredMemoryMiddleware(memory, name="SummarizationMiddleware")


def main() -> None:
    """One question to the agent; what its sub-agent said is on a track of its own."""
    with TieredMemory.open("deepagents_research.db") as memory:
        agent = create_deep_agent(
            init_chat_model("openai:gpt-5-mini"),
            middleware=[remembering(memory)],
            subagents=[
                {
                    "name": "researcher",
                    "description": "Looks things up.",
                    "system_prompt": "Answer briefly.",
                    "middleware": [remembering(memory)],  # a sub-agent of yours needs one of its own
                }
            ],
        )
        config = RunnableConfig(configurable={"thread_id": "harbour"})
        answer = agent.invoke({"messages": [HumanMessage("Ask the researcher how deep the harbour is.")]}, config)
        print(answer["messages"][-1].text)
        print("tracks:", memory.session("harbour").tracks())


if __name__ == "__main__":
    main()
