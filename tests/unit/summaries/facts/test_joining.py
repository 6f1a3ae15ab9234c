"""What a model says in fewer words is taken where it says what the notes said, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.facts.supersession import standing
from langchain_tiered_memory.summaries.tree.reviews import joining
from langchain_tiered_memory.types.records import Fact


def note(number: int, text: str, **changes: object) -> Fact:
    made = Fact(
        id=f"{number:016x}", kind="statement", text=text, seq=number, at=float(number), by="user", sources=(number,),
        weight=LASTING, by_model=True,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


KEPT = (
    note(3, "Ana's flat search: started, as of 2025-01-03"),
    note(4, "Ana's flat search: at most 900 euros a month"),
    note(7, "Ana's flat search: viewing on Saturday at 10:00"),
    note(7, "The wifi of the flat: password teal-anchor-77", id="a" * 16),
    note(8, "Bram's visa: until 3 May 2026", by="assistant"),
    note(9, "The log: 41 warnings", by="tool"),
)


def test_a_joined_note_stands_for_those_that_it_names() -> None:
    (one,) = joining("- [instead of 1 2 3] [keep] Ana's flat search: viewing Saturday 10:00, at most 900 euros", KEPT)
    assert one.text == "Ana's flat search: viewing Saturday 10:00, at most 900 euros"
    assert one.joins == tuple(fact.id for fact in KEPT[:3])
    assert (one.seq, one.at, one.sources, one.by, one.weight) == (7, 7.0, (3, 4, 7), "user", LASTING)
    assert one.subject == "ana flat search"
    stands = standing([*KEPT, one])
    assert {stands[fact.id] for fact in KEPT[:3]} == {("joined", one.id)}
    assert {stands[fact.id] for fact in (*KEPT[3:], one)} == {("active", None)}


def test_what_a_joined_note_replaced_stays_replaced() -> None:
    was = note(2, "Ana's flat search: at most 800 euros a month")
    now = replace(KEPT[1], ends=(was.id[:8],))
    other = KEPT[2]
    assert standing([was, now, other])[was.id] == ("superseded", now.id)
    (joined,) = joining("- [instead of 1 2] [keep] Ana's flat search: 900 euros, Saturday 10:00", [now, other])
    stands = standing([was, now, other, joined])
    assert stands[was.id] == ("superseded", now.id)
    assert stands[now.id] == stands[other.id] == ("joined", joined.id)


def test_a_note_said_shorter_stands_though_the_longer_one_takes_something_back() -> None:
    was = note(2, "The therapist: Mondays at four")
    long = note(7, "The therapist on Mondays: half past five, no longer at four", id="b" * 16, ends=(was.id[:8],))
    (short,) = joining("- [instead of 1] [keep] Therapist on Mondays: half past five", [long])
    for shorter in (short, replace(short, id="1" * 16), replace(short, id="f" * 16)):
        stands = standing([was, long, shorter])
        assert stands[shorter.id] == ("active", None)
        assert stands[long.id] == ("joined", shorter.id)
        assert stands[was.id][0] == "superseded"
        for number in ("0a", "fa"):
            again = replace(shorter, id=number * 8, text="Therapist: half past five", joins=(shorter.id,))
            stands = standing([was, long, shorter, again])
            assert stands[again.id] == ("active", None)
            assert stands[shorter.id] == ("joined", again.id)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("- [instead of 1 2] [keep] Ana's flat search: at most 950 euros", id="a figure of its own"),
        pytest.param("- [keep] Ana's flat search: at most 900 euros", id="names none"),
        pytest.param("- [instead of 0 7 99] [keep] Ana's flat search", id="names what is not there"),
        pytest.param("- [instead of 1 2] [keep] Zebras graze", id="shares no word"),
        pytest.param("- [instead of 2] [keep] Ana's flat search: at most 900 euros a month", id="as it was"),
        pytest.param(f"- [instead of 1 2] [keep] Ana's flat search: {'900 euros and more ' * 9}", id="no shorter"),
        pytest.param("- [instead of 1 2] [keep]", id="says nothing"),
    ],
)
def test_a_line_that_says_something_else_joins_nothing(line: str) -> None:
    assert joining(line, KEPT) == []


def test_what_lacks_a_code_or_a_figure_of_a_note_leaves_that_note() -> None:
    (one,) = joining("- [instead of 1 2 4] [keep] Ana's flat: at most 900 euros", KEPT)
    assert one.joins == (KEPT[0].id, KEPT[1].id), "the password is not in it; that it was a search is"


def test_what_a_tool_told_may_lose_a_figure_and_a_range_states_its_ends() -> None:
    exits = replace(
        KEPT[0], by="tool", text="early exits of `commit()`: `skip()` (262-264, prints a hint), `warned()` (296)"
    )
    caller = replace(
        KEPT[1], by="tool", text="caller of `commit()`: the Stop hook, line 479, which prints nothing of its own"
    )
    (one,) = joining(
        "- [instead of 1 2] [tool] [keep] `commit()`, called by the Stop hook: early exits at 262 and 296",
        [exits, caller],
    )
    assert one.joins == (exits.id, caller.id)
    persons = [replace(exits, by="user"), replace(caller, by="user")]
    (one,) = joining(
        "- [instead of 1 2] [keep] `commit()`, called by the Stop hook: early exits at 262 and 296", persons
    )
    assert one.joins == (exits.id,), "line 479 is a person's figure"


def test_the_day_of_a_note_is_no_figure_of_its_own() -> None:
    kept = [replace(one, at=1_736_700_000.0) for one in KEPT]
    (one,) = joining("- [instead of 1 2] [keep] Ana's flat search: 900 euros, since 2025-01-12", kept)
    assert one.joins == (KEPT[0].id, KEPT[1].id)
    assert joining("- [instead of 1 2] [keep] Ana's flat search: 900 euros, since 2025-01-13", kept) == []


def test_what_is_not_marked_again_is_listed_no_more() -> None:
    (one,) = joining("- [instead of 1] Ana's search is past\n- [instead of 2] Ana's search is past", KEPT)
    assert (one.joins, one.weight < LASTING) == ((KEPT[0].id,), True), "a figure is not let go of so"


def test_a_note_is_joined_once_and_on_the_word_of_the_least() -> None:
    lines = (
        "- [instead of 1 2] [keep] Ana's flat search: 900 euros",
        "- [instead of 2 3 5] [keep] Ana, Bram: 10:00, 3 May",
    )
    first, second = joining("\n".join(lines), KEPT)
    assert first.joins == (KEPT[0].id, KEPT[1].id)
    assert (second.joins, second.by) == ((KEPT[2].id, KEPT[4].id), "assistant")


def test_a_tools_find_is_joined_to_no_persons_word() -> None:
    (one,) = joining("- [instead of 2 6] [keep] Ana's flat search: at most 900, the log", KEPT)
    assert (one.joins, one.by) == ((KEPT[1].id,), "user")
