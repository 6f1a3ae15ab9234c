r"""For your tests: a chat model that answers from a script, one that condenses plausibly, and a frozen clock.

    model = ScriptedModel(answers=["## Overview\\nAll well."])
    clock = FrozenClock(1_700_000_000)
    memory = TieredMemory.open(model=model, clock=clock)

Nothing here touches the network.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence  # noqa: TC003 - pydantic reads the annotations of a model's fields
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr, SkipValidation

from langchain_tiered_memory.messages.message_text import role_of, text_of
from langchain_tiered_memory.summaries.prompts.batch_prompt import flat
from langchain_tiered_memory.summaries.prompts.building import WORDS_PER_TOKEN
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth, telling
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun

Reply: TypeAlias = str | AIMessage | BaseException
"""What a scripted model does when called: answers with a text or a message, or raises."""

_CHARS_PER_TOKEN = 4


class FrozenClock:
    """A clock that only moves when you tell it to.

    Args:
        seconds: Its time at the start, in seconds since the epoch.
    """

    def __init__(self, seconds: float = 1_700_000_000.0) -> None:
        self._seconds = seconds

    def __call__(self) -> float:
        """Seconds since the epoch."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Move by `seconds`. A negative number sets the clock back."""
        self._seconds += seconds


class ScriptedModel(BaseChatModel):
    """A chat model that answers from a script, sync and async, and records its calls.

    It returns an `AIMessage` of the script unchanged. A text gets `usage_metadata`, at one token per four characters.
    After the end of the list, it repeats the last reply.
    """

    answers: Sequence[SkipValidation[Reply]] | Callable[[list[BaseMessage]], Reply] = Field(
        default_factory=lambda: ["ok"]
    )
    """The replies in order, or a function that takes the messages and returns a reply."""
    refused_options: frozenset[str] = frozenset()
    """Call options, such as `temperature`, that make the model raise `ValueError`, as reasoning models do."""
    report_usage: bool = True
    """Whether texts come with `usage_metadata`."""

    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _options: list[dict[str, Any]] = PrivateAttr(default_factory=list)

    @property
    def calls(self) -> int:
        """How often it was called, including calls that raised."""
        return len(self._prompts)

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        """The messages of each call."""
        return list(self._prompts)

    @property
    def options(self) -> list[dict[str, Any]]:
        """The call options (`temperature` and so on) of each call."""
        return list(self._options)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class passes it
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class passes it
        **kwargs: Any,  # noqa: ANN401 - any option of any provider
    ) -> ChatResult:
        return self._reply(messages, kwargs)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class passes it
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base class passes it
        **kwargs: Any,  # noqa: ANN401 - any option of any provider
    ) -> ChatResult:
        return self._reply(messages, kwargs)

    def _reply(self, messages: list[BaseMessage], options: dict[str, Any]) -> ChatResult:
        with self._lock:
            number = len(self._prompts)
            self._prompts.append(list(messages))
            self._options.append(dict(options))
        for option in sorted(self.refused_options & options.keys()):
            message = f"Unsupported value: '{option}' is not supported with this model"
            raise ValueError(message)
        reply: Reply = (
            self.answers(messages) if callable(self.answers) else self.answers[min(number, len(self.answers) - 1)]
        )
        if isinstance(reply, BaseException):
            raise reply
        return ChatResult(generations=[ChatGeneration(message=self._message(reply, messages))])

    def _message(self, reply: str | AIMessage, messages: Sequence[BaseMessage]) -> AIMessage:
        if isinstance(reply, AIMessage):
            return reply
        if not self.report_usage:
            return AIMessage(reply)
        asked = sum(len(str(message.text)) for message in messages) // _CHARS_PER_TOKEN
        answered = len(reply) // _CHARS_PER_TOKEN
        usage = {"input_tokens": asked, "output_tokens": answered, "total_tokens": asked + answered}
        return AIMessage(reply, usage_metadata=usage)


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
