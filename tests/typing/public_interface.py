"""Uses of the public interface that a type checker must accept, with the type that it must find; nobody runs this."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_tiered_memory import Context, Hit, Session, Settings, TieredMemory
from langchain_tiered_memory.reports import DoctorReport, FlushReport, Receipt, VerifyReport
from langchain_tiered_memory.types import SummaryTree, WindowUse
from langchain_tiered_memory.types.outcomes import Outcome
from langchain_tiered_memory.types.records import Entry, Summary

if TYPE_CHECKING:
    from pathlib import Path


def sync_verbs(where: Path) -> None:
    with TieredMemory.open(where, embeddings=None, settings=Settings(), read_only=False) as memory:
        assert_type(memory, TieredMemory)
        session = memory.session("s", user="ann", track="main")
        assert_type(session, Session)
        assert_type(session.add_messages([HumanMessage("hello"), ("ai", "hello")], wait=True), list[str])
        assert_type(session.messages(), list[BaseMessage])
        context = session.context("what was it?", max_tokens=2000)
        assert_type(context, Context)
        assert_type(context.tokens, int)
        assert_type(context.messages, list[BaseMessage])
        assert_type(session.search("crane", k=3), list[Hit])
        assert_type(session.expand("abc"), list[Summary | Entry])
        assert_type(session.revisions("m1"), list[BaseMessage])
        assert_type(session.outcomes(), list[Outcome])
        assert_type(session.forget(message_ids=["m1"]), Receipt)
        assert_type(session.flush(), FlushReport)
        assert_type(session.tree(), SummaryTree)
        assert_type(session.window_use(), WindowUse)
        assert_type(memory.sessions(user="ann"), list[str])
        assert_type(memory.verify(), VerifyReport)
        assert_type(memory.doctor(), DoctorReport)
        assert_type(memory.forget(user="ann"), Receipt)


async def async_verbs(where: Path) -> None:
    async with await TieredMemory.aopen(where, embeddings=None, settings=Settings(), read_only=False) as memory:
        assert_type(memory, TieredMemory)
        session = memory.session("s")
        assert_type(await session.aadd_messages([HumanMessage("hello")], wait=True), list[str])
        assert_type(await session.amessages(), list[BaseMessage])
        assert_type(await session.acontext("what was it?", max_tokens=2000), Context)
        assert_type(await session.asearch("crane", k=3), list[Hit])
        assert_type(await session.aexpand("abc"), list[Summary | Entry])
        assert_type(await session.arevisions("m1"), list[BaseMessage])
        assert_type(await session.aoutcomes(), list[Outcome])
        assert_type(await session.aforget(message_ids=["m1"]), Receipt)
        assert_type(await session.aflush(), FlushReport)
        assert_type(await session.atree(), SummaryTree)
        assert_type(await memory.asessions(user="ann"), list[str])
        assert_type(await memory.averify(), VerifyReport)
        assert_type(await memory.adoctor(), DoctorReport)
        assert_type(await memory.aforget(user="ann"), Receipt)


async def what_must_not_pass(where: Path) -> None:
    """Each ignore is used, or the checker complains of it: these lines are errors."""
    TieredMemory.open(where, setings=None)  # type: ignore[call-arg]
    await TieredMemory.aopen(where, setings=None)  # type: ignore[call-arg]
    TieredMemory.open(where, chroma=7)  # type: ignore[arg-type]
    TieredMemory.open(where, token_counter=7)  # type: ignore[arg-type]
    TieredMemory.open(where, embeddings=7)  # type: ignore[arg-type]
    with TieredMemory.open(where) as memory:
        memory.session(7)  # type: ignore[arg-type]
        memory.forget(user="ann", checkpointer="none")  # type: ignore[arg-type]
        memory.forget(user="ann", store="none")  # type: ignore[arg-type]
        memory.session("s").context(max_tokens="2000")  # type: ignore[arg-type]
        memory.session("s").context(tools=["search"])  # type: ignore[list-item]
        memory.session("s").context(budget=2000)  # type: ignore[call-arg]
        memory.session("s").add_messages([7])  # type: ignore[list-item]
        memory.session("s").search("crane", limit=3)  # type: ignore[call-arg]
        await memory.session("s").asearch("crane", limit=3)  # type: ignore[call-arg]
        await memory.session("s").acontext(budget=2000)  # type: ignore[call-arg]
    Settings(busy_secs=3)  # type: ignore[call-arg]
