"""A session's page tells what the verbs tell, from a database that stays as it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.cli.app import run
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.types.arguments import Scope
from tests.memory_builders import conversation, open_memory
from tests.page_builders import BUDGET, SESSION, full_session

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.types.contexts import Context

pytestmark = pytest.mark.slow


def content_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="content">(.+?)</script>', page)
    assert found
    told: dict[str, Any] = json.loads(found[1])
    return told


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, Context]]:
    where = tmp_path_factory.mktemp("page") / "memory.db"
    return where, full_session(where)


def test_a_page_has_every_message_summary_fact_decision_checkpoint_and_file(
    filled: tuple[Path, dict[int, Context]],
) -> None:
    with TieredMemory.open(filled[0], embeddings=None, read_only=True) as memory:
        session = memory.session(SESSION)
        told = content_in(session.page())
        entries = [dict(zip(told["entries"]["columns"], row, strict=True)) for row in told["entries"]["rows"]]
        assert [(one["seq"], one["text"]) for one in entries] == [(one.seq, one.text) for one in session.entries()]
        assert {one["id"] for one in told["summaries"]} == {one.id for one in session.tree().summaries}
        assert {one["id"] for one in told["facts"]} == {one.id for one in session.facts(k=5000, superseded=True)}
        assert [one["id"] for one in told["outcomes"]] == [one.id for one in session.outcomes()]
        assert [one["id"] for one in told["checkpoints"]] == [one.id for one in session.checkpoints()]
        assert [one["path"] for one in told["files"]] == [one.path for one in memory.run(SESSION).files()]
        edited = next(one for one in entries if one["revision"])
        assert told["revisions"][str(edited["seq"])] == ["The budget of the quay is 4,200 euros."]
        newest = told["outcomes"][0]
        assert told["views"][newest["after"]]["text"] == session.diff(newest["id"]).text_after


def test_what_a_diff_says_was_shown_is_what_the_calls_behind_it_got(filled: tuple[Path, dict[int, Context]]) -> None:
    where, got = filled
    compared = 0
    with TieredMemory.open(where, embeddings=None, read_only=True) as memory:
        session = memory.session(SESSION)
        entries = [one for one in session.entries() if one.track == "main"]
        decisions = session.outcomes()
        for seq, context in got.items():
            past = [one for one in decisions if one.last_seq < seq]
            view = session.diff(past[0].id).after if past else session.diff(decisions[-1].id).before
            recent = context.section("recent")
            assert recent is not None
            shown_from = view.whole_from if view is not None else 1
            left = set(view.left_groups) if view is not None else set()
            kept = set(view.kept_groups) if view is not None else set()
            shown = [
                one.id
                for one in entries
                if one.seq < seq and (one.group in kept or (one.seq >= shown_from and one.group not in left))
            ]
            assert set(recent.entry_ids + recent.passage_ids) == set(shown)
            if view is not None:
                told = {one for stretch in view.stretches for one in stretch.summary_ids}
                assert told == set(context.summary_ids)
                compared += 1
    assert compared > 10


def test_contexts_that_are_given_stand_there_word_for_word_with_their_accounts(
    filled: tuple[Path, dict[int, Context]],
) -> None:
    with TieredMemory.open(filled[0], embeddings=None, read_only=True) as memory:
        session = memory.session(SESSION)
        context = session.context(max_tokens=BUDGET)
        (told,) = content_in(session.page(contexts=[context]))["contexts"]
        by_seq = {one.seq: one for one in session.entries()}
        texts = [by_seq[one].text if isinstance(one, int) else one["text"] for one in told["messages"]]
    assert len(texts) == len(context.messages)
    assert texts[-1] == context.messages[-1].text
    assert any(isinstance(one, int) for one in told["messages"])
    assert [one["name"] for one in told["sections"]] == [one.name for one in context.sections]


def test_the_command_writes_the_same_page_and_changes_no_byte_of_the_database(
    filled: tuple[Path, dict[int, Context]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = filled[0]
    before, out = bytes_of(where.parent), tmp_path / "page.html"
    assert run(["page", str(where), SESSION, "-o", str(out), "--budget", str(BUDGET)]) == 0
    assert bytes_of(where.parent) == before
    told = content_in(out.read_text(encoding="utf-8"))
    assert len(told["contexts"]) == 1
    assert out.stat().st_mode & 0o077 == 0
    assert run(["page", str(where), "nobody"]) == 2
    assert "there is no session 'nobody'" in capsys.readouterr().err


def test_both_forms_give_the_same_page_and_refuse_what_has_none() -> None:
    with open_memory() as memory:
        with pytest.raises(NotFoundError, match="nothing to show"):
            memory.session("s").page()
        memory.session("s").add_messages(conversation(3))
        assert asyncio.run(memory.session("s").apage()) == memory.session("s").page()
        with pytest.raises(InvalidInputError, match="whole session"):
            memory.session("s", scope=Scope()).page()
        with pytest.raises(InvalidInputError, match="contexts"):
            memory.session("s").page(contexts=["none"])  # type: ignore[list-item]


def test_entries_can_be_read_on_from_a_number_and_a_scope_keeps_to_its_track() -> None:
    with open_memory() as memory:
        memory.session("s").add_messages(conversation(6))
        memory.session("s", track="other").add_messages(conversation(2))
        everything = memory.session("s").entries()
        assert [one.seq for one in everything] == list(range(1, 17))
        assert memory.session("s").entries(after=4, limit=3) == everything[4:7]
        assert asyncio.run(memory.session("s").aentries(after=15)) == everything[15:]
        alone = memory.session("s", track="other", scope=Scope())
        assert {one.track for one in alone.entries()} == {"other"}
        assert memory.session("nobody").entries() == []
