"""What replays an agent's transcript through an agent of LangChain: its turns, and a model that says what it said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self


class Actor(BaseChatModel):
    """Answers whatever it is asked with what it was told to say."""

    profile: dict[str, int] | None = None  # type: ignore[assignment] # plain numbers will do

    _next: AIMessage = PrivateAttr(default_factory=lambda: AIMessage("ok"))

    def will_say(self, answer: AIMessage) -> None:
        """The next answer."""
        self._next = answer

    def bind_tools(self, *_: Any, **__: Any) -> Self:  # noqa: ANN401 - the base class's own
        """Take tools and leave them alone."""
        return self

    @property
    def _llm_type(self) -> str:
        return "actor"

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=self._next)])


def agent_turns(messages: Sequence[BaseMessage]) -> list[tuple[list[BaseMessage], AIMessage]]:
    """What came in before each of the agent's answers, and the answer; answers to nothing are left out."""
    found: list[tuple[list[BaseMessage], AIMessage]] = []
    waiting: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, AIMessage) and waiting:
            found.append((waiting, message))
            waiting = []
        elif not isinstance(message, AIMessage | SystemMessage):
            waiting.append(message)
    return found
