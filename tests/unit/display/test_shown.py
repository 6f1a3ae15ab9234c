"""What values show of themselves: safely, briefly, and the same in a notebook and a terminal."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from rich.cells import cell_len

from langchain_tiered_memory.display.as_html import as_html
from langchain_tiered_memory.display.as_text import as_text
from langchain_tiered_memory.display.sheet import Bar, Changes, Node, Part, Sheet, Tree, Words, shallow
from langchain_tiered_memory.settings import GuardSettings
from langchain_tiered_memory.types.arguments import Scope
from langchain_tiered_memory.types.records import LeftOut
from tests.call_styles import CALL_STYLES, told
from tests.memory_builders import NOW, open_memory, quick_settings, turn

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from tests.call_styles import CallStyle

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><a href='javascript:x'>$E=mc^2$ &lt;"
    " \x1b[31mred\x1b[0m \u202egnp \ud800 [bold]no markup[/bold] :smile: {{x}} 漢字 "
)
TAGS = {
    "div", "b", "i", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "details", "summary", "ins", "del",
}  # fmt: skip
ATTRIBUTES = {"style", "class", "title", "role", "aria-label", "aria-hidden", "scope", "tabindex"}


class Reader(HTMLParser):
    """Collects what a browser would make of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str | None]] = {}
        self.said = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def shown_values(memory: TieredMemory, session_id: str, folder: Path) -> dict[str, Any]:
    """Everything that shows itself, of one session."""
    session = memory.session(session_id)
    context = session.context(max_tokens=700)
    values = {
        "context": context,
        "sections": context.sections[1],
        "tree": session.tree(),
        "facts": session.facts(superseded=True),
        "hits": session.search("harbour crane", k=5),
        "outcomes": session.outcomes(),
        "diff": session.diff(),
        "preview": session.preview(max_tokens=700),
        "ledger": session.ledger(),
        "costs": session.costs(),
        "metrics": session.metrics(),
        "window": session.window_use(),
        "expanded": session.expand(session.tree().roots[0].id),
        "entries": session.expand(session.tree().level(1)[0].id),
        "verify": memory.verify(),
        "doctor": memory.doctor(),
        "status": memory.status(),
        "session": session,
        "memory": memory,
    }
    (folder / "a<b>.py").write_text(HOSTILE.encode("utf-8", "replace").decode(), encoding="utf-8")
    with memory.run(session_id, background=False, roots=[folder]) as run:
        run.open(folder / "a<b>.py")
        values |= {"run": run, "report": run.report(), "files": run.files(), "tiers": run.report().sizes}
    values["receipt"] = session.forget(message_ids=[session.messages()[0].id or ""])
    for name in ("facts", "hits", "outcomes", "expanded", "entries", "files"):
        values[f"one of {name}"] = values[name][0]
    return values


def told_session(memory: TieredMemory, session_id: str = "s", *, turns: int = 24, said: str = "") -> None:
    """A session that was condensed, with a few contexts on the way."""
    session = memory.session(session_id)
    for number in range(turns):
        session.add_messages([message.model_copy(update={"content": message.text + said}) for message in turn(number)])
        session.context(max_tokens=2500)
    session.flush()
    session.context("", max_tokens=700)


@pytest.mark.slow
def test_every_value_shows_what_others_said_as_text_alone(tmp_path: Path) -> None:
    hostile_id = f"s{HOSTILE}".replace("\ud800", "").replace("\x1b", "")
    with open_memory(tmp_path / "m.db") as memory:
        memory.session(hostile_id).add_messages([HumanMessage(HOSTILE, name="<b>Eve</b>"), AIMessage(HOSTILE)])
        told_session(memory, hostile_id, said=HOSTILE)
        for name, value in shown_values(memory, hostile_id, tmp_path).items():
            html, text, line = value._repr_html_(), str(value), repr(value)
            read = Reader(html)
            assert read.open == [], name
            assert read.tags <= TAGS, name
            assert read.attributes.keys() <= ATTRIBUTES, name
            assert not any("url(" in (one or "") for one in read.attributes["style"]), name
            assert "mathjax_ignore" in html, name
            assert not {"\x1b", "\u202e", "\ud800"} & {*html, *text, *line}, name
            assert max(map(cell_len, text.split("\n"))) <= 80, name
            assert "\n" not in line, name
            assert len(line) <= 260, name
        context = memory.session(hostile_id).context(max_tokens=3000)
        assert "<script>alert(1)</script>" in Reader(context._repr_html_()).said


def test_a_list_that_shows_itself_is_a_list_in_everything_else() -> None:
    with open_memory() as memory:
        told_session(memory)
        session = memory.session("s")
        facts, hits = session.facts(), session.search("harbour")
        assert isinstance(facts, list)
        assert facts == list(facts)
        assert facts[:1] + hits[:0] == [facts[0]]
        assert pickle.loads(pickle.dumps(facts)) == facts  # noqa: S301 - ours
        assert json.loads(json.dumps([hit.id for hit in hits])) == [hit.id for hit in hits]
        assert session.facts("nothing that was said xyzzy") == []
        assert str(session.search("  ")) == "Hits 0 found"


def test_a_context_says_what_is_in_and_what_is_out_and_why() -> None:
    with open_memory(settings=quick_settings().model_copy(update={"guard": GuardSettings(window=3000)})) as memory:
        session = memory.session("s")
        pinned = session.add_messages([HumanMessage("word " * 4000)])[0]
        session.pin(pinned)
        told_session(memory)
        context = session.context("", max_tokens=900)
        text = str(context)
        assert f"{context.tokens:,} of 900 tokens" in text
        for section in context.sections:
            if section.tokens:
                assert section.name in text
        assert "too large: shown head and tail" in text
        html = context._repr_html_()
        assert 'role="img" aria-label="what takes the room: system' in html
        assert "what the model sees" in html
        assert context.messages[-1].text[:40] in Reader(html).said
        left = LeftOut(what="track researcher", reason="another track")
        assert "track researcher" in str(replace(context.sections[0], left_out=(left,))), "a name is no id to shorten"


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_tree_leads_from_its_roots_to_every_summary(call_style: CallStyle) -> None:
    with open_memory() as memory:
        told_session(memory, turns=32)
        session = memory.session("s")
        tree = told(call_style, session.tree)
        reached, waiting = [], list(tree.roots)
        while waiting:
            one = waiting.pop()
            reached.append(one.id)
            waiting += tree.children(one.id)
        assert sorted(reached) == sorted(one.id for one in tree.summaries)
        assert tree.height == max(one.level for one in tree.roots) >= 3
        assert tree.messages == 64
        assert tree.raw_messages == 64 - sum(one.entry_count for one in tree.level(1))
        assert f"messages {tree.roots[0].first_seq}-{tree.roots[0].last_seq}" in str(tree)


def test_a_scope_shows_the_tree_and_the_window_of_its_own_track_alone() -> None:
    with open_memory() as memory:
        told_session(memory)
        other = memory.session("s", track="side", scope=Scope())
        for number in range(8):
            other.add_messages([HumanMessage(f"side note {number} " * 20)])
        other.flush()
        other.context(max_tokens=800)
        tree = other.tree()
        assert tree.messages == 8
        assert {one.track for one in tree.summaries} == {"side"}
        assert {one.track for one in other.window_use()} == {"side"}
        assert len(memory.session("s").window_use()) == 26
        assert memory.session("nobody").tree().summaries == ()


def test_window_use_tells_of_each_context_what_it_needed_and_what_it_was_made_of() -> None:
    with open_memory(clock=lambda: NOW) as memory:
        told_session(memory)
        session = memory.session("s")
        context = session.context(max_tokens=700)
        last = session.window_use()[-1]
        assert (last.tokens, last.zone) == (context.tokens, context.guard.zone)
        assert last.needed_tokens == context.guard.used_tokens
        assert last.sections == {section.name: section.tokens for section in context.sections}
        assert "zones, call by call" in str(session.window_use())


def test_handles_read_nothing_for_their_repr_and_say_why_they_cannot_be_looked_up(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m.db")
    session, run = memory.session("s", user="ann"), memory.run("later")
    assert repr(session) == "<Session 's', track 'main'>"
    assert "not begun yet" in str(run)
    assert memory.sessions() == []
    assert str(session).startswith("Session 's': 0 messages")
    session.add_messages([HumanMessage("hello")])
    assert "does not belong to user 'bob'" in str(memory.session("s", user="bob"))
    assert "m.db, 1 session" in str(memory).replace("\n", "")
    memory.close()
    assert repr(memory).endswith("m.db>")
    assert "was closed" in str(memory)
    assert "was closed" in session._repr_html_()


def test_a_letter_of_a_bar_and_its_name_stay_on_one_line() -> None:
    parts = tuple(Part(name=f"part {number:02}", amount=100 + number) for number in range(12))
    bar = Bar(caption="c", parts=parts, total=9_000)
    *legend, last = as_text(Sheet(kind="K", about="a", blocks=(bar,))).partition("]\n")[2].splitlines()
    assert last.endswith("111 tokens")
    assert legend
    assert all(len(line) <= 80 and line.endswith(",") for line in legend)


def test_a_bar_gives_each_name_one_letter_and_fills_its_width() -> None:
    names = ["safe", "system", "safe", "sea"]
    bar = Bar(caption="c", parts=tuple(Part(name=name, amount=10) for name in names), total=80)
    text = as_text(Sheet(kind="K", about="a", blocks=(bar,)))
    drawn = text.split("[")[1].split("]")[0]
    assert len(drawn) == 78
    assert drawn.strip(".") == f"{'s' * 10}{'y' * 10}{'s' * 9}{'e' * 10}"
    assert "s safe 20, y system 10, e sea 10 tokens" in text


def test_a_change_is_told_by_signs_as_well_as_by_colour() -> None:
    blocks = (Changes(caption="c", before="one\ntwo", after="one\nthree"),)
    sheet = Sheet(kind="K", about="a", blocks=blocks)
    assert "- two\n+ three" in as_text(sheet)
    assert {"ins", "del"} <= Reader(as_html(sheet)).tags


def test_a_large_tree_is_shown_from_the_top_and_the_rest_is_counted() -> None:
    leaves = tuple(Node(label=f"leaf {number}") for number in range(50))
    top = Tree(caption="t", nodes=tuple(Node(label=f"root {number}", children=leaves) for number in range(5)))
    cut = shallow(top, 60)
    assert [node.detail for node in cut.nodes] == [" (50 below)"] * 5
    assert shallow(top, 300) == top
    assert shallow(Tree(caption="t", nodes=leaves), 10).nodes[-1].label == "... and 40 more"


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    sheet = Sheet(kind="K", about="a", blocks=(Words(text="x" * 10_000),))
    assert "and 6,000 more characters" in as_html(sheet)
    assert "and 8,800 more characters" in as_text(sheet)
