r"""For your tests: a chat model that answers from a script, and a frozen clock.

    model = ScriptedModel(answers=["## Overview\\nAll well."])
    clock = FrozenClock(1_700_000_000)
    memory = TieredMemory.open(model=model, clock=clock)

Nothing here touches the network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence  # noqa: TC003 - pydantic reads the annotations of a model's fields
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr, SkipValidation

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
