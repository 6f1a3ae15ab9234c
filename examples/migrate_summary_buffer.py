"""From `ConversationSummaryBufferMemory` to this memory: `python examples/migrate_summary_buffer.py`.

The old memory keeps a running summary and drops the messages under it. What it still has is brought over; from then on
everything is kept.
"""

from langchain.chat_models import init_chat_model
from langchain_classic.chains import ConversationChain
from langchain_classic.memory import ConversationSummaryBufferMemory
from langchain_core.messages import SystemMessage

from langchain_tiered_memory import ConversationTieredMemory, TieredMemory, import_history


def main() -> None:
    """One turn with the old memory, the move, one turn with the new one."""
    model = init_chat_model("openai:gpt-5-mini")
    old = ConversationSummaryBufferMemory(llm=model, max_token_limit=500)
    ConversationChain(llm=model, memory=old).invoke({"input": "My boat is called Petrel."})

    with TieredMemory.open("migrate_summary_buffer.db", model=model) as memory:
        session = memory.session("carol")
        if old.moving_summary_buffer:  # what stands for messages that the old memory no longer has
            session.add_messages([SystemMessage(f"Summary of what came before: {old.moving_summary_buffer}")])
        import_history(session, old.chat_memory)  # may be repeated: what is there already is left alone

        new = ConversationTieredMemory(memory=memory, session_id="carol", max_tokens=4000)
        chain = ConversationChain(llm=model, memory=new)
        print(chain.invoke({"input": "What is my boat called?"})["response"])
        print(len(session.messages()), "messages are kept")


if __name__ == "__main__":
    main()
