"""A stand-in for a condensing model, for tests and benchmarks: it answers with sentences of its sources."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_tiered_memory.messages.message_text import role_of, text_of
from langchain_tiered_memory.summaries.prompts.batch_prompt import flat
from langchain_tiered_memory.summaries.prompts.building import WORDS_PER_TOKEN
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth, telling
from langchain_tiered_memory.testing import ScriptedModel
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_CHARS_PER_TOKEN = 4
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_AIM = re.compile(r"Aim at (\d+) tokens")
_DEFAULT_AIM = 200
_FILLED = 0.8  # of the size asked for: four characters a token is generous for some scripts


def summarising_model() -> ScriptedModel:
    """Return a model that answers a condensing prompt with sentences of its sources, in the wanted sections and size.

    It is deterministic. Tests and benchmarks use it to run the whole path of a condensing model with real text.
    """
    return ScriptedModel(answers=lambda messages: in_parts(messages, _telling_of_part) or _telling((), (), ""))


_PART = re.compile(
    r"^<part (?P<number>\d+)(?: (?P<strategy>(?!notes )\w+))?(?: of=\"(?P<of>[\w ]*)\")? words=(?P<words>\d+)>$"
    r"(?P<own>.*?)(?=^<part |\Z)",
    re.MULTILINE | re.DOTALL,
)
_MESSAGE = re.compile(r"^<m ([^>\n]{1,200}?)(?: \d{4}-\d\d-\d\d \d\d:\d\d)?>", re.MULTILINE)
_STRETCH = re.compile(
    r"^<stretch count=(?P<count>\d+)(?: \d{4}-\d\d-\d\d \d\d:\d\d)?>(?P<begins>[^\n]*)$", re.MULTILINE
)
_FORM = re.compile(r"^`(\w+)`: (.+)\.$", re.MULTILINE)
_SPELT_OUT = re.compile(r"^(## .+)\n\(", re.MULTILINE)
"""A heading of the only requested summary, with what belongs under it."""
_BESIDE = re.compile(r"^<earlier[^>\n]{0,20}>\n|^<again>[^\n]*\n?", re.MULTILINE)
"""Lines of a part that nobody said: the tag before a summary, and why it is requested again."""


def in_parts(messages: Sequence[BaseMessage], write: Callable[[str], str]) -> str | None:
    """The answer of a stand-in to a prompt for one or several summaries. `None` for a prompt that asks for none.

    Args:
        messages: The prompt.
        write: Returns one summary, for a text with headings, the part's sources and `Aim at N tokens`.
    """
    asked = "\n".join(str(message.text) for message in spelt_out(messages))
    forms = {name: "\n".join(f"## {one}" for one in told.split(", ")) for name, told in _FORM.findall(asked)}
    alone = "\n".join(_SPELT_OUT.findall(str(messages[0].text))) if messages else ""
    texts: dict[str, str] = {}
    for part in _PART.finditer(asked):
        below = "\n".join(texts.get(one, "") for one in (part["of"] or "").split())
        aim = round(int(part["words"]) / WORDS_PER_TOKEN)
        prompt = f"{forms.get(part['strategy'], alone)}\n{part['own'].rstrip()}\n{below}\nAim at {aim} tokens"
        texts[part["number"]] = write(prompt)
    if not texts:
        return None
    return "\n".join(f"<summary {number}>\n{text}\n</summary>" for number, text in texts.items())


def spelt_out(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Turn a prompt that follows an agent's request into one that quotes what it names. Others stay as they are."""
    last = str(messages[-1].text) if messages else ""
    if not _STRETCH.search(last):
        return list(messages)
    shown = [(role_of(message), text_of(message)) for message in messages[:-1]]

    def quoted(stretch: re.Match[str]) -> str:
        begins = stretch["begins"]
        first = next((at for at, (_, text) in enumerate(shown) if flat(text).startswith(begins)), len(shown))
        found = shown[first : first + int(stretch["count"])]
        return "\n".join(f"<m {kind}>{text}" for kind, text in found)

    return [HumanMessage(_STRETCH.sub(quoted, last))]


def _telling_of_part(prompt: str) -> str:
    return _telling(_HEADING.findall(prompt), _messages_in(prompt), prompt)


def _messages_in(prompt: str) -> Iterator[tuple[str, str]]:
    """Speakers and texts of a part: messages after their tags, or the text of summaries."""
    tags = list(_MESSAGE.finditer(prompt))
    body = _BESIDE.sub("", prompt[: prompt.rfind("\nAim at ")])
    if not tags:
        lines = [line.removeprefix("- ") for line in body.splitlines() if line.strip() and not line.startswith("##")]
        yield "", "\n".join(lines)
    for place, tag in enumerate(tags):
        stop = tags[place + 1].start() if place + 1 < len(tags) else len(body)
        yield tag[1], body[tag.end() : stop].strip()


def _telling(headings: Sequence[str], sources: Iterable[tuple[str | None, str]], asked: str) -> str:
    """Sentences of the sources under the first headings, in the requested size."""
    aim = _AIM.search(asked)
    room = (int(aim[1]) if aim else _DEFAULT_AIM) * _CHARS_PER_TOKEN * _FILLED
    headings = headings[:2] or ["Overview"]
    room -= sum(len(heading) + _CHARS_PER_TOKEN for heading in headings)
    units = [
        Unit(_spoken(speaker or "", said), "point", number, len(said) / _CHARS_PER_TOKEN, weight=telling(said))
        for number, (speaker, text) in enumerate(sources)
        for said in sentences(text)
    ]
    chosen = list[int]()
    for index in in_order_of_worth(units):
        taken = len(units[index].text) + _CHARS_PER_TOKEN
        if taken <= room or not chosen:
            chosen.append(index)
            room -= taken
    first, *rest = [f"- {units[index].text}" for index in sorted(chosen)] or ["- Nothing was said."]
    lines = [f"## {headings[0]}", first]
    if rest and len(headings) > 1:
        lines.append(f"## {headings[1]}")
    lines += rest
    return "\n".join(lines)


def _spoken(speaker: str, said: str) -> str:
    return f"{speaker}: {said}" if speaker and not said.startswith(f"{speaker}:") else said
