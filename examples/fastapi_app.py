"""A chat service that streams its answers: `python examples/fastapi_app.py`.

    curl -N localhost:8080/chat/alice -d '{"text": "Hello"}' -H 'content-type: application/json'

PostgreSQL and a Chroma server let many workers share one memory; `docker compose -f examples/compose.yaml up` starts
both. Without the two variables it is one file on this machine.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from langchain_tiered_memory import TieredMemory, TieredMemoryMiddleware

DATABASE = os.environ.get("DATABASE_URL", "fastapi_app.db")
CHROMA = os.environ.get("CHROMA_URL")


class Said(BaseModel):
    """What a user says."""

    text: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the memory once, after any fork of the server, and close it at the end."""
    async with await TieredMemory.aopen(DATABASE, chroma=CHROMA) as memory:
        app.state.memory = memory
        app.state.agent = create_agent("openai:gpt-5-mini", [], middleware=[TieredMemoryMiddleware(memory)])
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/chat/{thread}")
async def chat(thread: str, said: Said) -> StreamingResponse:
    """The answer, word by word. What the user said is kept even when the client hangs up."""

    async def words() -> AsyncIterator[str]:
        config = RunnableConfig(configurable={"thread_id": thread})
        asked = {"messages": [HumanMessage(said.text)]}
        async for chunk, _ in app.state.agent.astream(asked, config, stream_mode="messages"):
            if isinstance(chunk, AIMessageChunk):
                yield chunk.text

    return StreamingResponse(words(), media_type="text/plain")


@app.get("/chat/{thread}")
async def transcript(thread: str) -> list[dict[str, str]]:
    """Everything that was ever said."""
    messages = await app.state.memory.session(thread).amessages()
    return [{"type": message.type, "text": message.text} for message in messages]


@app.get("/health")
async def health() -> dict[str, object]:
    """Whether the stores answer, and how far the vector index is behind."""
    status = await app.state.memory.astatus()
    return {"sessions": status.sessions, "vectors": status.vectors, "passages": status.passages, "gaps": status.gaps}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), log_level="warning")
