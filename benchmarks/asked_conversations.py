"""What every measuring of evidence shares: conversations with annotated questions, and the memory that is asked them.

Beside the memory's views stands the plainest memory there is: a window of the latest messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from benchmarks.reporting import screen
from langchain_tiered_memory.conversations import read_conversations, sample_conversation
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter

View: TypeAlias = Literal["recall", "default"]

VIEWS: dict[View, str] = {"recall": "memory, recall view", "default": "memory, default view"}
WINDOW: Final = "last-k window"
_SUFFIXES = (".json", ".jsonl")
_ASKED_AFTER_SECONDS = 60.0
"""The questions are asked a minute after the conversation's end."""


def read_groups(paths: Sequence[Path]) -> dict[str, list[Conversation]]:
    """Conversations with questions, by the folder they are in; the sample where no path is given.

    Of a folder, files that are no conversations are passed over with a remark; a file that is named must be one.

    Raises:
        InvalidInputError: when a named file is no conversation, or none has questions.
    """
    if not paths:
        return {"sample": [sample_conversation()]}
    groups: dict[str, list[Conversation]] = {}
    for path in paths:
        if not path.is_dir():
            groups.setdefault(path.resolve().parent.name, []).extend(read_conversations(path))
            continue
        for file in sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES):
            try:
                groups.setdefault(path.resolve().name, []).extend(read_conversations(file))
            except InvalidInputError as error:
                screen().print(f"passed over: {error}", style="dim")
    asked = {name: [one for one in found if one.questions] for name, found in groups.items()}
    if not any(asked.values()):
        msg = f"no annotated questions in {', '.join(map(str, paths))}: a conversation needs `questions` to be measured"
        raise InvalidInputError(msg)
    return {name: found for name, found in asked.items() if found}


def countable(conversation: Conversation) -> tuple[Question, ...]:
    """The questions whose evidence the conversation has."""
    return tuple(question for question in conversation.questions if question.left_out is None)


def opened(conversation: Conversation, *, counter: TokenCounter, embeddings: Embeddings | None) -> TieredMemory:
    """A memory whose clock stands at the conversation's end, and that works in this thread alone."""
    last = conversation.turns[-1].at
    return TieredMemory.open(
        embeddings=embeddings,
        settings=Settings(tree=TreeSettings(background=False)),
        token_counter=counter,
        clock=(lambda: last.timestamp() + _ASKED_AFTER_SECONDS) if last else None,
    )


def remember(session: Session, conversation: Conversation) -> None:
    """Put a whole conversation into `session` and finish all summaries and vectors.

    Raises:
        InvalidInputError: when the memory refuses a turn.
    """
    dated = all(turn.at for turn in conversation.turns)
    times = [turn.at for turn in conversation.turns if turn.at] if dated else None
    session.add_messages([turn.message for turn in conversation.turns], at=times)
    session.flush()
