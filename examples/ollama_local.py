"""A chat in which nothing leaves this machine: `python examples/ollama_local.py`.

Models, embeddings, database and index are all local. Start Ollama first, then:

    ollama pull llama3.2
    ollama pull nomic-embed-text
"""

from langchain_core.messages import AIMessage, HumanMessage
from langchain_ollama import ChatOllama, OllamaEmbeddings

from langchain_tiered_memory import TieredMemory


def main() -> None:
    """Ask three things; every request holds at most 2,000 tokens, however long the chat becomes."""
    model = ChatOllama(model="llama3.2", num_ctx=8192)
    embeddings = OllamaEmbeddings(model="nomic-embed-text")
    # The model of the chat writes the summaries too, in the background.
    with TieredMemory.open("ollama_local.db", model=model, embeddings=embeddings) as memory:
        chat = memory.session("carol")
        for said in ("I grow beans on the balcony.", "They need shade.", "What do I grow?"):
            chat.add_messages([HumanMessage(said)])  # kept before the model is asked
            context = chat.context(model=model, max_tokens=2000)
            answer = model.invoke(context.messages)
            chat.add_messages([AIMessage(answer.text)])
            print(f"> {said}  ({context.tokens} tokens)\n{answer.text}")


if __name__ == "__main__":
    main()
