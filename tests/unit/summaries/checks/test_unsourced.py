"""Figures and codes that no source has are marked; what follows from the sources is not."""

from __future__ import annotations

import time

import pytest

from langchain_tiered_memory.summaries.checks.unsourced import evidence, marked, without_marked

AT = 1_710_000_000.0  # 2024-03-09
SOURCES = (
    "The budget for the harbour is 8,430 euros, of which 2,100 are spent.",
    "Anna Petrov moves to the Rotterdam office on 2024-04-02, at 2:30 pm.",
    "We have twelve cranes; a third of them rests. Invoice F-0093 waits, see docs/cranes/plan.md.",
    "Two dozen bolts cost 96 euros. The backup takes 90 minutes and 1.5 GB.",
    "The International Maritime Organization wrote to us yesterday.",
)


def marks(text: str, sources: tuple[str, ...] = SOURCES) -> tuple[str, ...]:
    found = evidence(sources, (AT,), ("Bram",))
    assert found is not None
    return marked(text, found)[1]


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("The budget is 9,917 euros.", "9,917 euros"),
        ("It rose by 37.25 % since then.", "37.25 %"),
        ("Invoice G-7715 is paid.", "G-7715"),
        ("See https://evil.example/pay for more.", "https://evil.example/pay"),
        ("Ask mallory@evil.example.", "mallory@evil.example"),
        ("The plan is in docs/ships/secret.md now.", "docs/ships/secret.md"),
        ("It was founded on 4 May 1871.", "4 May 1871"),
        ("They meet at 17:47 sharp.", "17:47"),
    ],
)
def test_what_no_source_has_is_marked(text: str, strange: str) -> None:
    assert marks(text) == (strange,)


@pytest.mark.parametrize(
    "text",
    [
        "The budget is 8430 euros.",
        "The budget is about 8,400 euros, or 8.4k.",
        "Of the budget, 6,330 euros are left.",  # a difference
        "A quarter (25 %) of the budget is spent.",  # 2,100 of 8,430
        "Budget and bolts come to 8,526 euros.",  # a sum
        "Anna starts in Rotterdam on April 2, 2024 at 14:30.",
        "There are 12 cranes, and 24 bolts.",
        "Invoice 0093 (F0093) waits; the plan is in plan.md.",
        "The backup takes 1.5 hours and 1,500 MB.",
        "The IMO wrote on 8 March 2024.",
        "Petrov told Bram about Rotterdam's office on Tuesday.",
        "1. First\n2. Second\n10. Tenth",
        "## Overview of Zanzibar 4711",
        "- **Zanzibar Plans**: none.",
        "```\nx = 48291\n```",
        "Yevgenia told Bram, who was named elsewhere.",
        "The User asked the Assistant for an API in JSON.",
    ],
)
def test_what_follows_from_the_sources_is_not(text: str) -> None:
    assert marks(text) == ()


def test_a_mark_can_be_read_back_and_is_no_source_for_anything() -> None:
    found = evidence(SOURCES, (AT,))
    assert found is not None
    text, strange = marked("The budget is 9,917 euros, said Yevgenia.", found)
    assert text == "The budget is 9,917 euros, said Yevgenia [not in the source: 9,917 euros]."
    assert strange == ("9,917 euros",)
    assert marked(text, found) == (text, ())
    assert without_marked(text) == "The budget is , said Yevgenia."
    assert marks("The budget is 9,917 euros.", (text, "The harbour.")) == ("9,917 euros",)


def test_a_mark_stands_at_the_end_of_its_own_sentence_never_within() -> None:
    found = evidence(SOURCES, (AT,))
    assert found is not None
    text, _ = marked("- Yevgenia paid 48,291 euros for it. She left soon after, e.g. by ship.", found)
    assert text.startswith("- Yevgenia paid 48,291 euros for it [not in the source: ")
    assert text.endswith("]. She left soon after, e.g. by ship.")


def test_of_sources_too_long_to_be_read_nothing_is_accused() -> None:
    assert evidence(("word " * 300_000,), (AT,)) is None


@pytest.mark.parametrize("unit", ["9", "9,", "9.", "A", "Ab ", "a_", "[", "[not in the source: ", "**", "1:", "$", "-"])
def test_time_grows_with_the_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            found = evidence((text,), (AT,))
            assert found is not None
            marked(text, found)
            best = min(best, time.process_time() - began)
        return best

    seconds(1000)
    assert seconds(16_000) < 100 * max(seconds(2000), 0.002)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "\u4e13\u5bb6\u53f7\u4e94\u5341\u5757\uff0c\u62cd\u7247\u4e24\u767e\u3002",
            "\u6302\u53f7\u8d3950\u5143\uff0c\u68c0\u67e5\u7ea6200\u5143\u3002",
        ),
        (
            "\u706b\u66dc\u65e5\u306e\u5348\u5f8c3\u6642\u304b\u3089\u3067\u3059\u3002",
            "\u4f1a\u8b70\u306f\u706b\u66dc\u65e515\u6642\u3002",
        ),
        ("Saimaan m\u00f6kki maksaa 850 euroa viikossa.", "Hinta on 850 \u20ac/viikko."),
    ],
    ids=["Chinese numbers", "hours of the afternoon", "a rate"],
)
def test_figures_in_another_form_are_left_alone(said: str, told: str) -> None:
    found = evidence([said], [0.0])
    assert found is not None
    assert marked(told, found) == (told, ())
    assert marked("In all 77,777.", found)[1] == ("77,777",)


@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("Order #89 is on its way.", ()),
        ("A crane lifts 94,317 kg now.", ()),
        ("See docs/ships/PLAN.md.", ()),
        ("Order #891 is on its way.", ("#891",)),
        ("A crane lifts 4,317 kg now.", ("4,317 kg",)),
    ],
)
def test_what_stands_as_it_is_in_another_stretch_of_the_session_is_not(text: str, strange: tuple[str, ...]) -> None:
    beside = (
        "Order #89 came in, order #8912 did not.",
        "The new crane lifts 94,317 kg.",
        "It is in docs/ships/plan.md",
    )
    found = evidence(SOURCES, (AT,), beside=beside)
    assert found is not None
    assert marked(text, found)[1] == strange
