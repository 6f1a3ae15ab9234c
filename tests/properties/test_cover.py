"""Invariant 1: the stored cover has no gap and no overlap; what a context leaves out of it is named in its account."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.maintenance.verify import verify
from langchain_tiered_memory.testing import FrozenClock, ScriptedModel, summarising_model
from tests.memory_builders import (
    NOW,
    conversation,
    covered_seqs,
    entries_of,
    open_memory,
    quick_settings,
    summaries_of,
    turn,
)
from tests.strategies import broken_histories, healthy_histories, interleaved_histories, plain_text

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow

histories = st.one_of(healthy_histories(max_turns=6), interleaved_histories(), broken_histories(max_size=14))
batches = st.lists(
    st.tuples(st.sampled_from(["main", "main", "helper", "critic \x00/"]), histories, st.booleans()),
    min_size=1,
    max_size=4,
)
quickly = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def distinct(messages: list[BaseMessage], batch: int) -> list[BaseMessage]:
    """Ids of their own for each batch: here every message is a new one."""
    return [message.model_copy(update={"id": f"{batch}.{place}"}) for place, message in enumerate(messages)]


def grown(
    memory_batches: list[tuple[str, list[BaseMessage], bool]], session_id: str = "s", **choices: object
) -> Session:
    """A session with these batches, condensed in between where a batch says so, and at the end."""
    memory = open_memory(None, **choices)
    for number, (track, messages, flushes) in enumerate(memory_batches):
        session = memory.session(session_id, track=track)
        session.add_messages(distinct(messages, number))
        if flushes:
            session.flush()
    session = memory.session(session_id)
    session.add_messages([])
    return session


def cover_faults(session: Session) -> list[str]:
    """What is wrong with the stored cover."""
    entries = entries_of(session)
    summaries = {one.id: one for one in summaries_of(session)}
    seq_of = {entry.id: entry.seq for entry in entries}
    found: list[str] = []
    for level in {one.level for one in summaries.values()}:
        stood_for = Counter(
            seq for one in summaries.values() if one.level == level for seq in covered_seqs(one, summaries, seq_of)
        )
        found += [f"level {level} stands for {seq} {times} times" for seq, times in stood_for.items() if times > 1]
    finished = [one for one in summaries.values() if one.state.finished]
    roots = [one for one in finished if one.parent_id is None or not summaries[one.parent_id].state.finished]
    condensed = [seq for root in roots for seq in covered_seqs(root, summaries, seq_of)]
    raw = [entry.seq for entry in entries if entry.summary_id is None or not summaries[entry.summary_id].state.finished]
    whole = Counter(condensed + raw)
    found += [f"{entry.seq} stands {whole[entry.seq]} times" for entry in entries if whole[entry.seq] != 1]
    for one in summaries.values():
        covered = covered_seqs(one, summaries, seq_of)
        if (min(covered), max(covered), len(covered)) != (one.first_seq, one.last_seq, one.entry_count):
            found.append(f"{one.id} says {one.first_seq}-{one.last_seq} ({one.entry_count})")
    return found


def unaccounted(session: Session, context: Context) -> list[int]:
    """Entries of a session that a context neither shows, nor stands for, nor names as left out."""
    entries = entries_of(session)
    summaries = {one.id: one for one in summaries_of(session)}
    seq_of = {entry.id: entry.seq for entry in entries}
    stable = [section for section in context.sections if section.name != "recall"]
    named = {seq_of[one] for section in stable for one in (*section.entry_ids, *section.passage_ids)}
    shown = [summaries[one] for section in stable for one in section.summary_ids]
    for summary in shown:
        assert summary.state.finished, "only a finished summary stands in a view"
        named.update(covered_seqs(summary, summaries, seq_of))
    for left in (left for section in stable for left in section.left_out):
        span = re.fullmatch(r"(\d+)-(\d*)", left.what)
        if span:
            named.update(range(int(span[1]), int(span[2] or len(entries)) + 1))
        elif left.what in summaries:
            named.update(covered_seqs(summaries[left.what], summaries, seq_of))
        elif left.what == "other tracks":
            border = max((one.last_seq for one in shown), default=0)
            told = {one.id for one in summaries.values() if one.state.finished and one.last_seq <= border}
            others = [entry for entry in entries if entry.track != session.core.track]
            named.update(entry.seq for entry in others if entry.summary_id not in told)
        elif left.what in seq_of:
            named.add(seq_of[left.what])
    return [entry.seq for entry in entries if entry.seq not in named]


@quickly
@given(batches)
def test_every_entry_stands_exactly_once_among_the_roots_and_the_raw(
    memory_batches: list[tuple[str, list[BaseMessage], bool]],
) -> None:
    session = grown(memory_batches)
    if not any(messages for _, messages, _ in memory_batches):
        return
    assert cover_faults(session) == []
    session.flush()
    assert cover_faults(session) == []
    assert verify(session.core.runtime).problems == ()


@quickly
@given(batches, st.lists(st.sampled_from(["well", "raise", "empty", "refuse"]), min_size=1, max_size=12))
def test_the_cover_is_whole_however_the_model_behaves(
    memory_batches: list[tuple[str, list[BaseMessage], bool]], moods: list[str]
) -> None:
    calls = iter(range(10**6))
    good = summarising_model()

    def answer(messages: list[BaseMessage]) -> object:
        mood = moods[next(calls) % len(moods)]
        if mood == "raise":
            return RuntimeError("the model is away")
        if mood == "empty":
            return ""
        if mood == "refuse":
            return "I'm sorry, I cannot help with that."
        return good.invoke(messages).content

    clock = FrozenClock(NOW)
    model = ScriptedModel(answers=answer)
    session = grown([("main", conversation(12), True), *memory_batches], model=model, clock=clock)
    for _ in range(5):
        session.flush()
        assert cover_faults(session) == []
        context = session.context("", max_tokens=600)
        assert unaccounted(session, context) == []
        clock.advance(4000)
    assert model.calls, "so little room is shown in its words"
    assert verify(session.core.runtime).problems == ()


@quickly
@given(batches, st.integers(60, 1500), st.sampled_from([None, "", "order 4711"]), st.booleans())
def test_what_a_context_leaves_out_is_named_in_its_account(
    memory_batches: list[tuple[str, list[BaseMessage], bool]],
    budget: int,
    query: str | None,
    tree: bool,  # noqa: FBT001 - drawn
) -> None:
    session = grown(memory_batches, settings=quick_settings(enabled=tree))
    if not any(messages for _, messages, _ in memory_batches):
        return
    for _ in range(2):
        try:
            context = session.context(query, max_tokens=budget)
        except BudgetError as error:
            assert str(budget) in str(error)  # noqa: PT017 - a budget that is large enough raises nothing
            return
        assert unaccounted(session, context) == []
        session.flush()


def untold(session: Session, context: Context) -> list[int]:
    """Messages under a finished summary that a view neither shows nor tells of, though it has a history."""
    entries, summaries = entries_of(session), {one.id: one for one in summaries_of(session)}
    seq_of = {entry.id: entry.seq for entry in entries}
    stable = [section for section in context.sections if section.name != "recall"]
    told = {seq_of[one] for section in stable for one in (*section.entry_ids, *section.passage_ids)}
    for one in (one for section in stable for one in section.summary_ids):
        told.update(covered_seqs(summaries[one], summaries, seq_of))
    return [
        entry.seq
        for entry in entries
        if entry.seq not in told and entry.summary_id is not None and summaries[entry.summary_id].state.finished
    ]


@settings(max_examples=8, deadline=None)
@given(
    st.integers(8, 26),
    st.integers(2, 5),
    st.integers(2, 4),
    st.integers(500, 4000),
    st.tuples(
        st.sampled_from(["default", "detailed", "compact"]),
        st.sampled_from(["cover", "selection"]),
        st.sampled_from([(0.12, 0.08), (0.001, 0.0), (0.01, 0.3)]),
    ),
)
def test_every_condensed_message_is_told_at_some_resolution_however_small_the_cap(
    turns: int,
    messages: int,
    sources: int,
    budget: int,
    kind: tuple[str, str, tuple[float, float]],
) -> None:
    view, older, (cover_share, facts_share) = kind
    chosen = quick_settings(messages=messages, sources=sources)
    context_settings = chosen.context.model_copy(
        update={"older": older, "cover_share": cover_share, "facts_share": facts_share}
    )
    memory = open_memory(None, settings=chosen.model_copy(update={"context": context_settings}))
    session = memory.session("s")
    for number in range(turns):
        session.add_messages(turn(number))
        if number % 3 == 0:
            session.flush()
        if number % 4 == 0:
            context = session.context("", max_tokens=budget, view=view)
            assert untold(session, context) == []
    session.flush()
    assert untold(session, session.context(max_tokens=budget, view=view)) == []


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 60), st.lists(plain_text, min_size=1, max_size=6))
def test_messages_that_were_never_condensed_are_named_where_they_do_not_fit(count: int, said: list[str]) -> None:
    memory = open_memory(None, settings=quick_settings(enabled=False))
    session = memory.session("s")
    session.add_messages([HumanMessage(said[n % len(said)], id=f"m{n}") for n in range(count * 10)])
    context = session.context("", max_tokens=150)
    assert unaccounted(session, context) == []
    assert context.tokens <= 150
