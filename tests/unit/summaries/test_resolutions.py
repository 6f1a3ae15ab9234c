from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.summaries.resolutions import (
    HEADLINE_TOKENS,
    SHORT_SHARE,
    headline_of,
    joint_headline,
    short_of,
    whole_of,
)
from tests.unit.summaries.test_rendering import DAY, summary

COUNT = best_counter().count_text
TEXT = """## Key points
- Ann wants a grinder for the V60 under 900 euros, delivered before 12 May.
- They talked about the weather for a while, and about nothing in particular.
- Ben decided on the Comandante C40 grinder after he had compared it with two others.
- It was nice.
## Open
- Who pays for the shipping of the grinder to Oslo?
"""


def test_a_summary_in_short_keeps_its_most_telling_lines_in_their_order() -> None:
    found = short_of(summary(TEXT)).splitlines()
    assert found
    assert [line for line in TEXT.splitlines() if line in found] == found
    assert any("Comandante" in line or "V60" in line for line in found)


def test_what_an_assistant_lists_stays_the_assistants_wherever_colons_stand() -> None:
    text = "- user: Always name the venue.\n- assistant: It starts at 9. Duration: 1 hour in the blue hall of Oslo."
    line = headline_of(summary(text), count_text=COUNT)
    assert "assistant: Duration: 1 hour" in line or "Duration" not in line
    assert "venue. Duration" not in line


def test_prose_is_cut_into_its_sentences() -> None:
    said = "Ann asked for a quote. " * 6 + "The quote of 4,711 euros came from Oslo on 12 May. " + "Ben read it. " * 8
    brief = short_of(summary(said))
    assert "The quote of 4,711 euros came from Oslo on 12 May." in brief
    assert len(brief) < len(said) / 2


@given(st.text(max_size=2000))
def test_whatever_a_summary_says_in_short_it_takes_little_more_than_its_share_and_says_nothing_else(text: str) -> None:
    brief = short_of(summary(text))
    assert len(brief) <= max(0.6, SHORT_SHARE) * len(text) + 200
    words = text.split()
    assert all(word.strip("():,….") in text for word in brief.split() if word != "asked:")
    assert not words or brief == "" or brief.split()


@given(st.text(max_size=400), st.integers(1, 10**6), st.integers(0, 10**5), st.floats(0, 900 * DAY))
def test_a_headline_is_one_line_of_bounded_length_that_names_messages_and_dates(
    text: str, first: int, count: int, days: float
) -> None:
    line = headline_of(summary(text, first_seq=first, last_seq=first + count, last_at=days), count_text=COUNT)
    assert len(line.splitlines()) == 1
    assert line.startswith(f"[{first}-{first + count}, 1970-01")
    assert COUNT(line) <= HEADLINE_TOKENS


def test_a_headline_says_what_it_is_about() -> None:
    assert "grinder" in headline_of(summary(TEXT), count_text=COUNT)


def test_neighbours_in_one_line_are_named_with_what_is_missing_between_them() -> None:
    found = [
        summary(
            TEXT, id=f"{number}bcdef0123", first_seq=number * 10 + 1, first_at=number * DAY, last_at=(number + 1) * DAY
        )
        for number in range(3)
    ]
    line = joint_headline(found, span=(1, 60), count=55, untold=5, count_text=COUNT)
    assert line.startswith("[1-60, 1970-01-01/04, 55 messages, 5 more not told] ")
    assert "Comandante" in line


def test_a_wider_line_tells_something_of_each_of_them_before_more_of_one_and_in_their_order() -> None:
    texts = (
        "Ann bought a kayak. Ann sold her van.",
        "Ben moved to Porto. Ben plays the viola.",
        "Caro bakes rye. Caro won a race.",
    )
    found = [summary(text, id=f"{place}bcdef0123", model="m") for place, text in enumerate(texts)]

    def line(most: int) -> str:
        return joint_headline(found, span=(1, 30), count=30, untold=0, count_text=COUNT, most=most)

    head, _, told = line(200).partition("] ")
    assert told == " ".join(texts)
    each = f"{head}] Ann bought a kayak. Ben moved to Porto. Caro bakes rye."
    assert line(COUNT(each)) == each


CHAT = """## Themes
- Caroline: I totally agree, Mel.
- Melanie: Luna and Oliver!
- Melanie asked: Has this experience influenced your goals at all, now that you have met so many people there and heard what they say about it? Reply (Caroline, 27 Jun 2023): I went to a counseling workshop in Oslo last Friday. I was moved.
- Melanie (3 Jul 2023): I just signed up for a pottery class in Bergen.
Also said: 3 Jul 2023; Mel; Caro
"""  # noqa: E501 - as a summary is


def test_a_chat_in_short_tells_no_fillers_and_nothing_appended() -> None:
    found = short_of(summary(CHAT))
    assert "- Caroline (27 Jun 2023): I went to a counseling workshop in Oslo last Friday." in found
    assert not any(word in found for word in ("agree", "Luna", "Also said", "Reply"))


def test_a_model_written_overview_comes_first() -> None:
    text = f"## Overview\nAnn and Ben plan a ride to Oslo.\n{TEXT}"
    assert short_of(summary(text, model="a-model")).startswith("Ann and Ben plan a ride to Oslo.\n")


def test_what_a_model_put_first_under_each_heading_is_what_stands_in_short() -> None:
    points = [f"- Point {one} of {kind}, told at some length." for kind in ("themes", "parts") for one in "123456"]
    text = "\n".join(["## Themes", *points[:6], "## Artifacts", *points[6:]])
    brief = short_of(summary(text, model="a-model"))
    assert brief.splitlines() == [*points[:2], *points[6:8]]
    assert brief != short_of(summary(text, model="a-model", by_rules=True))


def test_in_short_a_model_s_points_stay_whole_and_none_takes_the_place_of_one_before_it() -> None:
    first = "- Ann plans a film about the harbour. She wants it done by May, with Ben's crane."
    text = "\n".join([first, f"- Ben {'sold many old boats and ' * 12}bought a crane.", "- Ann sleeps.", "- Ben eats."])
    brief = short_of(summary(text, model="a-model"))
    assert brief == first
    assert "Ann sleeps" not in brief


def test_in_short_a_model_s_summary_is_what_is_not_listed_beside_it() -> None:
    text = "- [keep] Ana's visa: until 3 May\n- [keep] Rent: 940 euros\n- Ana packs her things for a year in Ghent."
    assert short_of(summary(text, model="a-model", level=1)) == "- Ana packs her things for a year in Ghent."
    notes = "- [keep] Ana's visa: until 3 May\n- [keep] Rent: 940 euros"
    assert "Ana's visa" in short_of(summary(notes, model="a-model", level=1))


def test_in_short_a_model_s_overview_gives_way_to_the_first_point() -> None:
    overview = "Ann and Ben trade recommendations on books, games and films and help each other with their work."
    points = ["- Ann fell out with Carla, apologised and wrote her a letter.", "- Ben advised her to wait for a week."]
    brief = short_of(summary("\n".join(["## Overview", overview, "## Key outcomes", *points]), model="a-model"))
    assert brief == points[0]


def test_a_point_that_is_cut_ends_with_a_sentence_where_one_fits() -> None:
    text = (
        "## Overview\nAnn and Ben plan a fair.\n## Key points\n- Ann paid the hall. Ben " + "called and " * 20 + "left."
    )
    assert short_of(summary(text, model="a-model")).endswith("Ann paid the hall.")


def test_nothing_but_appended_items_is_told_all_the_same() -> None:
    assert short_of(summary("Also said: F-0000; F-0001; F-0002; F-0003; F-0004; F-0005; F-0006"))


@pytest.mark.parametrize("model", [None, "a-model"])
@pytest.mark.parametrize("text", ["**Ann moved to Oslo in May.**", "## Key points", "Not answered: call read_file()"])
def test_a_summary_that_is_a_heading_or_a_waiting_call_alone_is_told_all_the_same(text: str, model: str | None) -> None:
    written = summary(text, model=model)
    assert short_of(written).rstrip("\u2026") in text
    assert short_of(written)
    assert headline_of(written, count_text=COUNT)


def test_a_headline_is_the_statement_that_tells_most_with_who_said_it() -> None:
    line = headline_of(summary(CHAT), count_text=COUNT)
    assert line.partition("] ")[2].startswith(("Caroline (27 Jun 2023): I went to", "Melanie (3 Jul 2023): I just"))


def test_a_headline_of_a_model_s_summary_is_what_it_put_first() -> None:
    text = "- Ann wants the harbour lights mended before May.\n- Ben pays 4,711 euros for the crane in Oslo.\n"
    assert headline_of(summary(text, model="a-model"), count_text=COUNT).partition("] ")[2].startswith("Ann wants")


def test_of_statements_that_tell_the_same_the_first_is_told_whoever_speaks_seldom() -> None:
    said = "the bolts came late and the register says so."
    text = "\n".join(
        [
            f"- Ann: q0 {said}",
            f"- assistant: q9 {said}",
            *(f"- Ann: q{n} {said}" for n in (1, 2, 3)),
        ]
    )
    assert short_of(summary(text)).splitlines()[0] == f"- Ann: q0 {said}"


OPEN = "## Next steps\n- Ben sends the larch panels to Oslo.\nStill open: who pays?\nAlso said: F-0000"


def test_what_was_open_then_is_told_in_no_briefer_form_of_what_a_model_wrote() -> None:
    overview, said = "## Overview\n- Ann and Ben planned the fair.\n## Themes\n", "They talked for long. "
    long, short = f"{overview}- {said * 9}\n{OPEN}", "\n".join([overview, *[f"- {said}"] * 9, OPEN])
    written = summary(long, model="some-model", level=1)
    for told in (short_of(replace(written, text=short)), headline_of(written, count_text=COUNT)):
        assert "Ann and Ben planned the fair." in told
        assert "larch" not in told
        assert "who pays" not in told
    assert "larch" in short_of(replace(written, by_rules=True)), "without a model no note says that it is open"


def test_what_was_open_when_a_model_merged_is_told_while_nothing_follows() -> None:
    merged = summary(f"## Themes\n- Ann and Ben planned the fair.\n{OPEN}", model="some-model", level=2)
    assert whole_of(merged) == "## Themes\n- Ann and Ben planned the fair.\nAlso said: F-0000"
    assert whole_of(merged, ends=True) == merged.text
    assert whole_of(replace(merged, level=1)) == merged.text, "what was condensed last is told whole"
    only = replace(merged, text="## Open items\n- Ben sends the larch panels to Oslo.")
    assert whole_of(only) == only.text, "it would say nothing"


def test_what_is_to_be_done_does_not_pass_for_done_without_its_heading() -> None:
    brief = short_of(summary("## Next steps\n- Ben sends the larch panels to Oslo.\n" + "- Ann. " * 9, model="a-model"))
    assert brief == "- Next steps: Ben sends the larch panels to Oslo."


def test_in_short_and_as_a_headline_the_person_stands_before_an_assistant_s_advice_at_length() -> None:
    advice = "\n".join(
        f"- assistant: Step {number}: 4 x {number} = {4 * number}. Total: ${number},500." for number in range(9)
    )
    asked = (
        "- user: I'm trying to prove that the two triangles of my roof truss are congruent, although I measured one "
        "angle of the second one wrongly, so I want to see every step of the proof before Friday."
    )
    written = summary(f"## Key points\n{advice}\n{asked}\n{advice}")
    assert "roof truss" in short_of(written)
    line = headline_of(written, count_text=COUNT)
    assert "user: I'm trying to prove that the two triangles of my roof truss" in line
    assert COUNT(line) <= HEADLINE_TOKENS


def test_an_assistant_who_says_as_much_as_others_is_told_beside_them() -> None:
    text = "- user: Which port has the harbour service?\n- assistant: The harbour service listens on port 8123."
    assert "8123" in headline_of(summary(text), count_text=COUNT)


def test_code_heads_a_summary_only_where_nothing_was_said() -> None:
    code = "- assistant: Code: with down_revision, add_column, drop_column."
    said = "- user: We switch from SQLite to PostgreSQL 15 in May."
    assert "PostgreSQL" in headline_of(summary(f"{code}\n{said}"), count_text=COUNT)
    assert "down_revision" in headline_of(summary(code), count_text=COUNT)
