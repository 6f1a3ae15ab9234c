"""What a condensing model is shown of long output of tools; what people say stays whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.settings import TreeSettings
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.writers.fitting import LEFT_OUT, Shortening
from langchain_tiered_memory.summaries.writers.jobs import CondenseJob, Part, SourceText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Role

TREE = TreeSettings()
LIMIT = 60
COUNT = EstimatingCounter().count_text
CALL = 'write_file(path="a/b.py", content="'


def source(number: int, role: Role, text: str) -> SourceText:
    return SourceText(id=f"m{number}", text=text, tokens=COUNT(text), at=0.0, seq=number, role=role)


def job_of(*sources: SourceText, level: int = 1) -> CondenseJob:
    size = target_and_cap(TREE.level(level), sum(one.tokens for one in sources))
    return CondenseJob(
        level=level,
        strategy="detailed",
        sources=sources,
        facts=(),
        target_tokens=size.target_tokens,
        max_tokens=size.max_tokens,
        session_id="s",
        title=None,
        participants=(),
        first_at=0.0,
        last_at=0.0,
        message_count=len(sources),
    )


def shown(job: CondenseJob) -> CondenseJob:
    (found,) = Shortening(tool_tokens=LIMIT, tree=TREE, count_text=COUNT).of([Part(job=job)])
    return found.job


TEXTS = st.text(st.characters(codec="utf-8"), max_size=1200)
SOURCES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", "system", "other"]), TEXTS), max_size=6)


@given(SOURCES)
def test_outputs_keep_to_their_limit_and_whatever_anybody_says_stays(said: list[tuple[Role, str]]) -> None:
    job = job_of(*(source(number, role, text) for number, (role, text) in enumerate(said, 1)))
    found = shown(job)
    assert [one.id for one in found.sources] == [one.id for one in job.sources]
    assert found.target_tokens <= job.target_tokens
    assert found.max_tokens <= job.max_tokens
    for before, after in zip(job.sources, found.sources, strict=True):
        if before.role == "tool":
            assert COUNT(after.text) <= max(LIMIT, 0)
            assert after.tokens == COUNT(after.text)
        elif before.role != "assistant":
            assert after is before


@given(TEXTS, st.text("ab \n", min_size=0, max_size=3000))
def test_an_assistants_words_stay_and_the_texts_of_its_calls_give_way(words: str, content: str) -> None:
    said = words.replace("(", "")
    text = f'{said}\n{CALL}{content}")'
    (found,) = shown(job_of(source(1, "assistant", text))).sources
    assert found.text.startswith(said)
    assert COUNT(found.text) <= COUNT(said) + LIMIT + 2


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_what_is_short_is_the_very_same_job(role: Role) -> None:
    job = job_of(source(1, role, "crane 17 at berth 3"))
    assert shown(job) is job


def test_head_and_tail_stand_there_and_less_is_asked_for() -> None:
    text = "\n".join(f"line {number} of the log" for number in range(400))
    job = job_of(source(1, "user", "Why does it fail?"), source(2, "tool", text))
    found = shown(job)
    assert found.sources[1].text.startswith("line 0 of the log")
    assert found.sources[1].text.endswith("line 399 of the log")
    assert LEFT_OUT in found.sources[1].text
    assert found.max_tokens < job.max_tokens
    assert found.target_tokens < job.target_tokens


def test_summaries_that_are_merged_are_shown_whole() -> None:
    job = job_of(replace(source(1, "other", "word " * 400), role="tool"), level=2)
    assert shown(job) is job


REMINDER = "<note>\nWhenever you read a file you should consider whether it would be harmful.\n</note>"


def test_what_tools_repeat_is_shown_once_in_a_call_and_no_line_of_code_is_lost() -> None:
    reads = [source(n, "tool", f"{n}: return {n}\n{REMINDER}") for n in range(1, 5)]
    first, second = job_of(*reads[:2]), job_of(*reads[2:])
    found = Shortening(tool_tokens=LIMIT, tree=TREE, count_text=COUNT).of([Part(job=first), Part(job=second)])
    texts = [one.text for part in found for one in part.job.sources]
    assert sum("Whenever you read a file" in text for text in texts) == 1
    assert all(f"{n}: return {n}" in text for n, text in enumerate(texts, 1))


def edit_of(old: Sequence[str], new: Sequence[str]) -> str:
    return "\n".join(["I raise it.", "edit(", "path=a.py", "old:", *old, "new:", *new, ")"])


@pytest.mark.parametrize("between", [[], [""]])
def test_of_an_edit_the_lines_that_change_are_shown(between: list[str]) -> None:
    same = [line for n in range(60) for line in (f"    line {n} stays exactly as it was before", *between)]
    old, new = ([*same[:30], f"    retries = {n}", *same[30:]] for n in (3, 9))
    (found,) = shown(job_of(source(1, "assistant", edit_of(old, new)))).sources
    assert "retries = 3" in found.text
    assert "retries = 9" in found.text
    assert found.text.startswith("I raise it.\nedit(\npath=a.py")
    assert found.text.count("[...]") == 4


def test_of_an_edit_that_only_moves_lines_its_beginning_is_shown() -> None:
    lines = [f"    crane_{number} = weigh(berth={number}, tide='low')" for number in range(40)]
    (found,) = shown(job_of(source(1, "assistant", edit_of(lines, [*lines[1:], lines[0]])))).sources
    assert lines[0].strip() in found.text


def test_what_is_asked_for_goes_by_what_is_said_and_not_by_how_long_tools_are() -> None:
    calls = [source(n, "assistant", f'grep(pattern="{"the 450 euros were paid; " * 20}{n}")') for n in range(0, 10, 2)]
    results = [source(n, "tool", "No matches found in 450 files.") for n in range(1, 10, 2)]
    searching = job_of(*calls, *results)
    talking = job_of(*(source(n, "user", one.text) for n, one in enumerate(searching.sources)))
    searched, talked = (
        Shortening(tool_tokens=300, tree=TREE, count_text=COUNT).of([Part(job=job)])[0].job
        for job in (searching, talking)
    )
    assert talked is talking
    assert searched.target_tokens < talked.target_tokens
    assert searched.max_tokens == talked.max_tokens


def test_of_small_talk_less_is_asked_for_and_the_limit_stays() -> None:
    told = ["We moved the launch to 3 May because the printer in Ghent is booked.", "The deposit of 450 euros is paid."]
    talk = ["Wow, that is great to hear, thanks for sharing.", "I love that!", "Have a great day, bye!"]
    plain = job_of(*(source(n, "user", text) for n, text in enumerate(told * 6)))
    chatty = job_of(*(source(n, "user", text) for n, text in enumerate(told * 6 + talk * 8)))
    foreign = job_of(*(source(n, "user", "Die Miete steigt im Mai auf 900 Euro.") for n in range(12)))
    assert shown(chatty).target_tokens <= shown(plain).target_tokens
    assert shown(chatty).max_tokens == chatty.max_tokens
    assert shown(foreign) is foreign


def test_what_merges_parts_of_the_same_call_goes_by_what_these_are_asked_for() -> None:
    talk = "Wow, that is great to hear, thanks for sharing."
    below = job_of(*(source(n, "user", talk) for n in range(40)))
    above = replace(job_of(source(1, "other", "A point. " * 200), source(2, "other", "A point. " * 200)), level=2)
    shortening = Shortening(tool_tokens=LIMIT, tree=TREE, count_text=COUNT)
    _, merged = shortening.of([Part(job=below), Part(job=above, below={above.sources[0].id: 0})])
    _, other = shortening.of([Part(job=below), Part(job=above)])
    assert merged.job.target_tokens < other.job.target_tokens
    assert merged.job.max_tokens == above.max_tokens


def test_a_line_that_says_whose_words_follow_stays() -> None:
    refused = "Nothing was written. To tell you how to go on, the user said:"
    results = [source(n, "tool", f"{refused}\nleave berth {n} alone") for n in range(1, 3)]
    found = shown(job_of(*results))
    assert [one.text for one in found.sources] == [one.text for one in results]
