"""An agent on Anthropic's API that makes use of the prompt cache: `python examples/anthropic_agent.py`."""

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware


def main() -> None:
    """Three turns; the beginning of each request is the one before, so Anthropic bills it at the cached price."""
    model = ChatAnthropic(model_name="claude-sonnet-5", max_tokens_to_sample=1024, timeout=60, stop=None)
    with TieredMemory.open("anthropic_agent.db", model=model) as memory:
        # cache_hints=True sets Anthropic's cache breakpoints where the request will repeat.
        agent = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory, cache_hints=True)])
        bob = RunnableConfig(configurable={"thread_id": "bob"})
        for said in ("I am Bob. I build boats.", "Use oak for the keel.", "Which wood did I choose?"):
            answer = agent.invoke({"messages": [HumanMessage(said)]}, bob)
            print(f"> {said}\n{answer['messages'][-1].text}")


if __name__ == "__main__":
    main()
