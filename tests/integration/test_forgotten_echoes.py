"""What was forgotten stands nowhere that a model wrote: not beside it, behind it or above it, nor in other words."""

from __future__ import annotations

import re
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sqlalchemy import inspect

from langchain_tiered_memory.forgetting.echoes import telling
from langchain_tiered_memory.testing import ScriptedModel, in_parts
from tests.call_styles import CALL_STYLES, told
from tests.memory_builders import open_memory, quick_settings, ref_of, small_levels, store_of, summaries_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory import Session, Settings, TieredMemory
    from tests.call_styles import CallStyle

both = pytest.mark.parametrize("call_style", CALL_STYLES)
SECRET = "My safe stands in Quorvenstad and opens with 48213."
NAMED = re.compile(r"quorvenstad|(?<![\w.])48,?213(?!\w)|strongbox", re.IGNORECASE)  # no digits of an id or a time
SAID = re.compile(r"^(?:<m [^>\n]*>|- (?:\[keep\] )?)(.+)$", re.MULTILINE)
PART = re.compile(r"^<part (\d+)(?: (?!words)(\w+))?(?: of=\"([\w ]*)\")?[^>\n]*>$", re.MULTILINE)
KEPT = re.compile(r"^(\d+)(?: \([\d-]+\))?: (.+)$", re.MULTILINE)
BUDGET = 500
HERBS = ("basil", "thyme", "sage", "mint", "dill", "chive", "cumin", "fennel", "anise", "sorrel", "lovage", "tansy")


def talk(first: int, last: int) -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for number in range(first, last):
        herb = f"{HERBS[number % len(HERBS)]} {number}0"
        said += [
            HumanMessage(f"The pot of {herb} wants water on the balcony.", id=f"u{number}"),
            AIMessage(f"Good; the {herb} shall have it by the evening then.", id=f"a{number}"),
        ]
    return said


def echoing(leaks: Callable[[str, str], str]) -> ScriptedModel:
    """A model that quotes what it is shown, and adds to each summary what `leaks(its part, the whole prompt)` says."""

    def answer(messages: Sequence[BaseMessage]) -> str:
        asked = "\n".join(str(one.text) for one in messages)

        def write(part: str) -> str:
            said = SAID.findall(part) or [line.removeprefix("- ") for line in part.splitlines() if " pot of " in line]
            said = [line.removeprefix("[keep] ") for line in said]
            kept = [f"- [keep] {line}" for line in said if " safe " in line]
            lines = kept or [f"- {line}" for line in said[:2]] or ["- Herbs were watered."]
            return "\n".join([*lines, *filter(None, [leaks(part, asked)])])

        given = in_parts(messages, write) or write(asked)
        for number, form, _ in PART.findall(asked):
            if form == "notes":
                (a, one), (b, two) = [(place, note) for place, note in KEPT.findall(asked) if "berth" in note][-2:]
                berths = ", ".join(re.findall(r"\d+", f"{one} {two}"))
                line = f"- [instead of {a} {b}] [keep] Boats: {berths}{leaks('notes', asked)}"
                given += f"\n<summary {number}>\n{line}\n</summary>"
        return given

    return ScriptedModel(answers=answer)


def everything(memory: TieredMemory) -> str:
    """All that the database holds, each table and index, contents of checkpoints too."""
    held: list[str] = []
    with store_of(memory).database.read() as connection:
        for name in inspect(connection).get_table_names():
            for row in connection.exec_driver_sql(f'SELECT * FROM "{name}"').mappings():
                for value in row.values():
                    if isinstance(value, bytes | memoryview):
                        raw = bytes(value)
                        with suppress(zlib.error):
                            raw = zlib.decompress(raw)
                        held.append(raw.decode("utf-8", "replace"))
                    else:
                        held.append(str(value))
    return "\n".join(held)


def shown(call_style: CallStyle, session: Session) -> str:
    """All that the memory tells of a session."""
    contexts = [told(call_style, session.context, query, max_tokens=BUDGET) for query in ("", "Where is my safe?")]
    hits = told(call_style, session.search, "Quorvenstad 48213 strongbox safe")
    return "\n".join(
        [
            *(str(message.text) for one in contexts for message in one.messages),
            *(hit.text for hit in hits),
            *(one.text for one in told(call_style, session.facts, k=999, superseded=True)),
            *(one.text for one in told(call_style, session.tree).summaries),
            told(call_style, session.page),
        ]
    )


def fed(call_style: CallStyle, session: Session, *stretches: Sequence[BaseMessage], lazily: bool = True) -> None:
    for said in stretches:
        told(call_style, session.add_messages, said)
        if lazily:
            told(call_style, session.context, "", max_tokens=BUDGET)
        told(call_style, session.flush)


def forget_and_look(
    call_style: CallStyle, memory: TieredMemory, model: ScriptedModel, where: Any = None, ids: Sequence[str] = ("s",)
) -> None:
    """Forget what told of the safe: it is nowhere, now and when all was made anew, and no prompt shows it again."""
    session = memory.session("t")
    receipt = told(call_style, session.forget, message_ids=ids)
    assert not NAMED.findall(everything(memory))
    if where is not None and str(where).endswith("memory.db"):
        held = b"".join(path.read_bytes() for path in where.parent.rglob("*") if path.is_file())
        assert not NAMED.findall(held.decode("latin-1"))
        assert receipt.may_remain == ()
    before = model.calls
    fed(call_style, session, talk(200, 206))
    assert not NAMED.findall(everything(memory))
    assert not NAMED.findall(shown(call_style, session))
    assert not NAMED.findall(str(model.prompts[before:]))
    assert told(call_style, memory.verify).healthy


def stood(memory: TieredMemory, *, level: int | None = None, beside: str = "My safe") -> bool:
    """Whether the word stood in a summary of other messages: the attack is one."""
    found = [one for one in summaries_of(memory.session("t")) if level in (None, one.level)]
    return any(NAMED.search(one.text) and beside not in one.text for one in found)


SAFE = [HumanMessage(SECRET, id="s"), AIMessage("Noted.", id="noted")]
ASKED = [HumanMessage("Is the balcony safe today?", id="q"), AIMessage("It is safe today.", id="r")]
FIRST, LATER = [*SAFE, *talk(0, 16)], [*talk(16, 18), *ASKED, *talk(18, 34)]
"""Two stretches, each condensed in a call of its own; the writer of the second is shown a note of the first."""


def flat(sources: int = 99) -> Settings:
    """Levels of which the first call writes no summary that a later one has a part in."""
    first, second, third = small_levels(sources=sources)
    return quick_settings(levels=(first, second, third.model_copy(update={"sources": 99})))


def is_beside(part: str, asked: str) -> bool:
    """Whether a prompt shows the messages that tell of the safe, and this part of it does not."""
    return SECRET in re.sub("<kept>.*?</kept>", "", asked, flags=re.DOTALL) and "Quor" not in part


def has_note(part: str, asked: str) -> bool:
    """Whether a prompt shows a note of them, and this part of it nothing of that."""
    kept = re.search("<kept>.*?</kept>", asked, re.DOTALL)
    return kept is not None and "Quor" in kept[0] and "Quor" not in part


@both
@pytest.mark.parametrize("says", ["- Quorvenstad came up.", "- There is a strongbox."])
def test_not_in_what_the_same_call_wrote_of_other_messages(call_style: CallStyle, where: Any, says: str) -> None:
    model = echoing(lambda part, asked: says if is_beside(part, asked) else "")
    with open_memory(where, model=model) as memory:
        fed(call_style, memory.session("t"), FIRST)
        assert stood(memory)
        forget_and_look(call_style, memory, model, where)


@both
@pytest.mark.parametrize(
    "says",
    ["- The safe in Quorvenstad is theirs.", "- The vault opens with 48,213 as before.", "- There is a strongbox."],
)
def test_not_where_a_later_writer_was_shown_a_note_of_it_and_names_none(
    call_style: CallStyle, where: Any, says: str
) -> None:
    model = echoing(lambda part, asked: says if has_note(part, asked) else "")
    with open_memory(where, model=model, settings=flat()) as memory:
        fed(call_style, memory.session("t"), FIRST, LATER)
        assert stood(memory, level=1)
        forget_and_look(call_style, memory, model, where)


@both
@pytest.mark.parametrize("says", ["- Quorvenstad, too.", "- There is a strongbox."])
def test_not_in_a_headline_above_other_stretches(call_style: CallStyle, where: Any, says: str) -> None:
    model = echoing(lambda part, asked: says if has_note(part, asked) and "<m " not in part else "")
    with open_memory(where, model=model, settings=flat(sources=3)) as memory:
        fed(call_style, memory.session("t"), FIRST, LATER)
        assert stood(memory, level=2)
        assert not stood(memory, level=1)
        forget_and_look(call_style, memory, model, where)


@both
@pytest.mark.parametrize("says", ["Quorvenstad", "a strongbox"])
def test_not_in_a_note_that_joins_others(call_style: CallStyle, where: Any, says: str) -> None:
    model = echoing(lambda part, asked: f"; {says}" if part == "notes" and "Quor" in asked else "")
    with open_memory(where, model=model, settings=flat()) as memory:
        session = memory.session("t")
        told(call_style, session.add_messages, SAFE)
        for first in range(0, 60, 12):
            boats = [HumanMessage(f"My safe boat {n} is moored at berth {n}0.") for n in range(first, first + 12)]
            between = talk(first, first + 12)[1::2]
            fed(call_style, session, [one for pair in zip(boats, between, strict=True) for one in pair])
        joined = [one.text for one in told(call_style, session.facts, k=999) if one.text.startswith("Boats:")]
        assert any(says in one for one in joined)
        forget_and_look(call_style, memory, model, where)


@both
def test_not_on_another_track(call_style: CallStyle, where: Any) -> None:
    model = echoing(lambda *_: "" if seen else "- The helper named Quorvenstad.")
    seen: list[bool] = []
    with open_memory(where, model=model, settings=flat()) as memory:
        told(call_style, memory.session("t", track="helper").add_messages, SAFE)
        fed(call_style, memory.session("t"), talk(0, 24))
        assert stood(memory)
        seen.append(True)
        forget_and_look(call_style, memory, model, where)


@both
@pytest.mark.parametrize("whole", [False, True])
def test_not_in_another_session_of_the_user_but_in_anybody_elses(
    call_style: CallStyle,
    where: Any,
    whole: bool,  # noqa: FBT001
) -> None:
    model = echoing(lambda *_: "" if seen else "- Quorvenstad was told of elsewhere.")
    seen: list[bool] = []
    with open_memory(where, model=model, settings=flat()) as memory:
        told(call_style, memory.session("other", user="ann").add_messages, SAFE)
        fed(call_style, memory.session("t", user="ann"), talk(0, 24))
        fed(call_style, memory.session("bob", user="bob"), talk(0, 24))
        assert stood(memory)
        seen.append(True)
        ids = {} if whole else {"message_ids": ["s"]}
        receipt = told(call_style, memory.session("other").forget, **ids)
        assert receipt.summaries > 0, "those of the other session are told of, too"
        assert not stood(memory)
        assert not NAMED.search(shown(call_style, memory.session("t")))
        assert NAMED.search(shown(call_style, memory.session("bob")))
        assert told(call_style, memory.verify).healthy


BARN = "The barn was sold for 1,400,000 on 2031-03-12, and four thousand of it are ours."


@pytest.mark.parametrize(
    "says", ["It went for 1.4 million.", "That was on March 12th.", "It was 12.03.2031.", "Of it 4,000 stay."]
)
@pytest.mark.parametrize("left", [False, True])
def test_not_a_figure_or_a_day_in_another_form(*, says: str, left: bool) -> None:
    model = echoing(lambda *_: "" if seen else f"- {says}")
    seen: list[bool] = []
    with open_memory(model=model, settings=flat()) as memory:
        others = [HumanMessage(BARN, id="s"), AIMessage("Noted.")]
        others += [HumanMessage("Others paid 1.4 million on 12/03/2031, four thousand of it at once.")] if left else []
        memory.session("other", user="ann").add_messages(others)
        fed("sync", memory.session("t", user="ann"), talk(0, 24))
        seen.append(True)
        memory.session("other").forget(message_ids=["s"])
        assert any(says[:-1] in one.text for one in summaries_of(memory.session("t"))) is left


@both
def test_not_in_a_session_that_waits_to_be_forgotten_itself(call_style: CallStyle, where: Any) -> None:
    model = echoing(lambda *_: "" if seen else "- Quorvenstad was told of elsewhere.")
    seen: list[bool] = []
    with open_memory(where, model=model, settings=flat()) as memory:
        told(call_style, memory.session("other", user="ann").add_messages, SAFE)
        told(call_style, memory.session("t", user="ann").add_messages, talk(30, 32))
        keys = [ref_of(memory.session(name)).key for name in ("other", "t")]
        store_of(memory).removal.begin(dict.fromkeys(keys, ()), now=memory.session("t").core.runtime.now())
        fed(call_style, memory.session("t"), talk(0, 24))
        assert stood(memory)
        seen.append(True)
        told(call_style, memory.forget, user="bob")  # takes up what was begun
        assert not NAMED.findall(everything(memory))
        assert memory.session("t").messages() == talk(0, 24)
        assert told(call_style, memory.verify).healthy


@both
def test_what_is_being_written_while_it_is_forgotten_comes_to_nothing(call_style: CallStyle) -> None:
    def leaks(part: str, asked: str) -> str:
        if not is_beside(part, asked):
            return ""
        if not done:
            done.append(memory.session("t").forget(message_ids=["s"]))
        return "- Quorvenstad came up."

    done: list[Any] = []
    model = echoing(leaks)
    with open_memory(model=model) as memory:
        fed(call_style, memory.session("t"), FIRST)
        assert done
        assert not NAMED.findall(everything(memory))
        assert not NAMED.findall(shown(call_style, memory.session("t")))
        assert told(call_style, memory.verify).healthy


@both
def test_not_what_an_edited_message_said_before(call_style: CallStyle) -> None:
    model = echoing(lambda part, asked: "- Quorvenstad, as said." if has_note(part, asked) else "")
    with open_memory(model=model, settings=flat()) as memory:
        session = memory.session("t")
        fed(call_style, session, FIRST, LATER)
        told(call_style, session.add_messages, [HumanMessage("Never mind.", id="s")])
        told(call_style, session.flush)
        assert stood(memory)
        forget_and_look(call_style, memory, model)


@both
def test_what_others_say_too_stays_and_rules_quote_nothing_but_what_they_stand_for(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("t")
        fed(call_style, session, [*FIRST, *LATER])
        before = {one.id for one in summaries_of(session) if "Quor" not in one.text}
        above = {one.id for one in summaries_of(session)} - before
        told(call_style, session.forget, message_ids=["s"])
        assert {one.id for one in summaries_of(session)} >= before - above
    model = echoing(lambda *_: "- The balcony has pots that want water.")
    pots = HumanMessage("The pots on the balcony want water; my safe is in Quorvenstad.", id="s")
    with open_memory(model=model, settings=flat()) as memory:
        session = memory.session("t", user="ann")
        told(call_style, memory.session("other", user="ann").add_messages, [pots])
        fed(call_style, session, FIRST[1:], LATER)
        there = {one.id for one in summaries_of(session)}
        told(call_style, memory.session("other").forget, message_ids=["s"])
        assert {one.id for one in summaries_of(session)} == there, "they tell of pots that are still there"


@pytest.mark.parametrize(
    ("text", "tells"),
    [("x 7", False), ("The answer that was asked about, on a day", False), ("\u9ce5", True), ("Quorvenstad", True)],
)
def test_words_that_everybody_says_and_single_letters_are_no_echo(text: str, *, tells: bool) -> None:
    assert bool(telling(text)) is tells


@pytest.mark.parametrize(
    ("one", "other", "form"),
    [
        ("1,400,000", "1.4 million", "=1400000.0"), ("4000", "four thousand", "=4000.0"), ("10 boats", "ten", "=10.0"),
        ("twelve hundred", "1,200", "=1200.0"), ("15:40", "3:40 pm", "=15.0"), ("2 May 2031", "2031-05-02", "=2/5"),
        ("May 2nd, 2031", "02.05.2031", "=2/5"), ("2/5/31", "on 2 May", "=2/5"),
        ("5\u67082\u65e5", "2031\u5e745\u67082\u65e5", "=2/5"), ("2031-05-02T10:00", "2nd of May", "=2/5"),
    ],
)  # fmt: skip
def test_a_figure_or_a_day_is_known_in_another_form(one: str, other: str, form: str) -> None:
    assert form in telling(one) & telling(other)


@pytest.mark.parametrize("text", ["1.4 thousand", "14 million", "2 June", "7:05", "5:02", "five", "5"])
def test_another_figure_or_day_is_not(text: str) -> None:
    assert telling(text).isdisjoint(telling("1,400,000 on 2 May, at 3:40 pm, for 5"))
