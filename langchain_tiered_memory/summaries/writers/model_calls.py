"""One condensing model as its condenser knows it: its window, the options it takes, what its calls cost.

Meets what differs between providers: a temperature that reasoning models refuse, a window that many do not tell, an
overflow that each words its own way, usage that some do not report.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.driver import call_model
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.models.chat_models import (
    answer_limit,
    cached_tokens,
    is_cut_off,
    is_filtered,
    models_in,
    name_of,
    narrowest,
    window_of,
)
from langchain_tiered_memory.models.overflow import is_overflow
from langchain_tiered_memory.models.traces import traced
from langchain_tiered_memory.summaries.checks.answers import summary_text
from langchain_tiered_memory.text.scrubbing import scrubbed
from langchain_tiered_memory.types.outcomes import FailureReason
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import Runnable, RunnableConfig

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob

logger = logging.getLogger(__name__)

_MESSAGE_TOKENS = 8  # framing of a message, where nobody counts it for us
_SHRUNK = 0.6  # of a prompt that overflowed: the window assumed from then on


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said, as a bare summary text."""

    text: str
    tokens: int
    spent: Spent
    cut_off: bool = False
    """Whether it ends before it is whole: the model may not write more in one answer, or its provider stopped it."""
    calls_tools: bool = False
    cached_tokens: int | None = None
    """Of what was read, from the provider's cache; `None` where it does not say."""


class PromptOverflowError(Exception):
    """The model said that the prompt does not fit into its window. Never leaves the condenser."""

    def __init__(self, spent: Spent) -> None:
        super().__init__("the prompt does not fit into the model's window")
        self.spent = spent


@dataclass(slots=True)
class ModelCalls:
    """Calls one chat model."""

    model: Runnable[Any, Any]
    _: KW_ONLY
    name: str
    """Who signs the summaries."""
    count_text: Callable[[str], int]
    count_message: Callable[[BaseMessage], int] | None = None
    """Tokens of a message as billed; `count_text` of its text where it is not given."""
    default_window: int = 8192
    """Tokens assumed for a model that has no `profile["max_input_tokens"]`; said once in a warning."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back, for `Spent.seconds`."""
    deadline_seconds: float | None = None
    """How long to wait for one answer; `None` leaves that to the model."""
    traces: bool = True
    """Whether its calls are runs in LangChain's tracers."""
    _takes_temperature: bool = field(default=True, init=False)
    _learned_window: int | None = field(default=None, init=False)
    _learned_limit: int | None = field(default=None, init=False)
    _warned: bool = field(default=False, init=False)

    def count(self, prompt: list[BaseMessage]) -> int:
        """Tokens of a whole prompt."""
        return sum(self._tokens(message) for message in prompt)

    def as_bound(self, model: Runnable[Any, Any]) -> ModelCalls:
        """Calls of the same model with tools and settings bound to it, which learn nothing for those without."""
        return replace(self, model=model)

    def is_of(self, model: object, *, by_name: bool) -> bool:
        """Whether `model` is, or wraps, the first model that is called here; by its name is enough where `by_name`."""
        own, other = next(iter(models_in(self.model)), None), next(iter(models_in(model)), None)
        if own is None or other is None:
            return False
        return own is other or (by_name and name_of(own) == name_of(other))

    def window(self) -> int:
        """Tokens that the model can read: as it says now, or less where an overflow taught us so."""
        narrow = narrowest(models_in(self.model))
        told = window_of(narrow)
        if told is None:
            told = self.default_window
            if not self._warned:
                self._warned = True
                logger.warning(
                    "%s does not tell its window; %d tokens are assumed (set default_window, or its profile)",
                    self.name,
                    told,
                )
        return min(told, self._learned_window) if self._learned_window else told

    def answer_limit(self) -> int | None:
        """Tokens that one answer may have: as the model says now, or less where an answer was cut off before."""
        told = answer_limit(self.model)
        known = [one for one in (told, self._learned_limit) if one is not None]
        return min(known, default=None)

    def ask(self, prompt: list[BaseMessage], job: CondenseJob) -> Flow[Answer]:
        """One answer; asked again without a temperature where the model takes none, which is remembered.

        Raises:
            CondensationError: when the model raised.
            PromptOverflowError: when it said that the prompt is too long; `window` is smaller from then on.
        """
        about = {
            telemetry.CONVERSATION: job.session_id,
            "gen_ai.request.model": self.name,
            "tiered_memory.level": job.level,
            "tiered_memory.strategy": job.strategy,
        }
        wanted = {"level": job.level, "strategy": job.strategy, "source_tokens": job.source_tokens}
        with (
            telemetry.operation("condense_memory", about, is_current=False) as note,
            traced("condense", wanted, session_id=job.session_id, wanted=self.traces) as trace,
        ):
            answer = yield from self._asked(prompt, job, config=_config(job) | trace.of_call())
            read, written = answer.spent.input_tokens, answer.spent.output_tokens
            trace.outputs |= {"text": answer.text, "input_tokens": read, "output_tokens": written, "model": self.name}
            note({"tiered_memory.condense.input_tokens": read, "tiered_memory.condense.output_tokens": written})
            model = {"gen_ai.request.model": self.name}
            telemetry.record(telemetry.CONDENSE_TOKENS, read, {**model, "gen_ai.token.type": "input"})
            telemetry.record(telemetry.CONDENSE_TOKENS, written, {**model, "gen_ai.token.type": "output"})
        return answer

    def _asked(self, prompt: list[BaseMessage], job: CondenseJob, *, config: RunnableConfig) -> Flow[Answer]:
        started = self.monotonic()
        for options in (self._options(job), {}):
            try:
                answer = yield from call_model(
                    self.model, prompt, config, deadline_seconds=self.deadline_seconds, **options
                )
                break
            except CondensationError:
                raise  # whoever drives us refused the call
            except Exception as error:
                if not (options and "temperature" in str(error).casefold()):
                    raise self._failed(error, prompt, started) from error
                self._takes_temperature = False
        text = summary_text(str(answer.text))  # reasoning blocks are no part of `text`
        spent = self._spent(prompt, answer, self.monotonic() - started)
        tokens = self.count_text(text) if text else 0
        cut_off = is_cut_off(answer)
        if cut_off and tokens:  # as we count, which is what the next call is asked for by
            self._learned_limit = min(tokens, self._learned_limit or tokens)
        said = answer if isinstance(answer, AIMessage) else None
        return Answer(
            text=text,
            tokens=tokens,
            spent=spent,
            cut_off=cut_off or is_filtered(answer),
            calls_tools=said is not None and bool(said.tool_calls or said.invalid_tool_calls),
            cached_tokens=cached_tokens(said.usage_metadata) if said is not None else None,
        )

    def _options(self, job: CondenseJob) -> dict[str, Any]:
        profiles = (getattr(one, "profile", None) for one in models_in(self.model))  # missing, empty, or changed since
        refuses = any(isinstance(one, dict) and one.get("temperature", True) is False for one in profiles)
        takes_it = self._takes_temperature and not refuses
        return {"temperature": job.temperature} if takes_it and job.temperature is not None else {}

    def _failed(self, error: Exception, prompt: list[BaseMessage], started: float) -> Exception:
        if not is_overflow(error):
            message = f"{self.name} failed: {type(error).__name__}: {error}; the messages are untouched"
            spent = Spent(calls=1, seconds=self.monotonic() - started)
            reason = FailureReason.TIMEOUT if isinstance(error, TimeoutError) else FailureReason.MODEL_ERROR
            return CondensationError(message, spent=spent, reason=reason, retry_after_seconds=_wait_asked(error))
        self._learned_window = int(self.count(prompt) * _SHRUNK)
        said = scrubbed(str(error))
        logger.warning("%s: its window is taken as %d tokens from here on: %s", self.name, self._learned_window, said)
        return PromptOverflowError(Spent(calls=1, seconds=self.monotonic() - started))

    def _spent(self, prompt: list[BaseMessage], answer: BaseMessage, seconds: float) -> Spent:
        usage = answer.usage_metadata if isinstance(answer, AIMessage) else None
        read = usage["input_tokens"] if usage else self.count(prompt)
        written = usage["output_tokens"] if usage else self._tokens(answer)
        return Spent(calls=1, input_tokens=read, output_tokens=written, seconds=seconds)

    def _tokens(self, message: BaseMessage) -> int:
        if self.count_message is not None:
            return self.count_message(message)
        return self.count_text(str(message.text)) + _MESSAGE_TOKENS


def _wait_asked(error: Exception) -> float | None:
    """For how many seconds a provider asks to be left alone, as the errors of most clients tell it."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    if not hasattr(headers, "get"):
        return None
    said = str(headers.get("retry-after"))
    if said.isascii() and said.isdigit():
        return float(said) or None
    until, sent = _http_date(said), _http_date(str(headers.get("date")))
    if until is None:
        return None
    wait = until - (time.time() if sent is None else sent)
    return wait if wait > 0 else None


def _http_date(said: str) -> float | None:
    parts = parsedate_tz(said)
    with suppress(ValueError, OverflowError):  # of a year or a day that there is not
        return float(mktime_tz(parts)) if parts is not None else None
    return None


def _config(job: CondenseJob) -> RunnableConfig:
    """Named and traced, and out of the user's stream of tokens."""
    return {
        "run_name": "tiered_memory_condense",
        "tags": ["nostream", "tiered_memory"],
        "metadata": {
            "tiered_memory_session_id": job.session_id,
            "tiered_memory_level": job.level,
            "tiered_memory_strategy": job.strategy,
        },
    }
