"""Types of the public verbs' arguments: plain types for a type checker, which `border` also uses to check calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from langchain_core.messages import BaseMessage, MessageLikeRepresentation
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

    from langchain_tiered_memory.protocols import TokenCounter

MOST = 2**63
"""A database's whole numbers are below this."""


@dataclass(frozen=True, slots=True)
class Such:
    """Annotates a type with the values that are allowed."""

    wanted: str
    """In words, as in "it must be ..."."""
    fits: Callable[[Any], bool] = lambda _: True
    """Whether a value of the type is allowed."""
    is_secret: bool = False
    """Whether an error must not show the refused value."""


def is_path(value: object) -> bool:
    """Whether this can be a file's path: not empty, and without what no file system accepts, such as a NUL."""
    if not isinstance(value, str | Path) or str(value) == "" or "\0" in str(value):
        return False
    try:
        str(value).encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def as_paths(given: str | Path | Iterable[str | Path]) -> tuple[str, ...]:
    """Paths as strings. A single string is one path, never a list of letters."""
    several = (given,) if isinstance(given, str | Path) else given
    return tuple(str(path) for path in several)


Name: TypeAlias = Annotated[str, Such("a string that is not empty", bool)]
Words: TypeAlias = Annotated[str, Such("words, not only blanks", lambda words: words.strip() != "")]
MOST_NOTE_CHARS = 600
Note: TypeAlias = Annotated[
    str,
    Such(
        f"words, at most {MOST_NOTE_CHARS} characters",
        lambda note: note.strip() != "" and len(note) <= MOST_NOTE_CHARS,
    ),
]
SessionId: TypeAlias = Annotated[str, Such("a string that is not empty, such as LangGraph's thread_id", bool)]
Count: TypeAlias = Annotated[int, Such("a whole number from 1 up", lambda count: count >= 1)]
Amount: TypeAlias = Annotated[int, Such("a whole number from 0 up", lambda amount: amount >= 0)]
Seconds: TypeAlias = Annotated[float, Such("a finite number of seconds from 0 up", lambda seconds: seconds >= 0)]
ModelOrName: TypeAlias = Annotated[
    Any,
    Such(
        "a chat model, its name or None",
        lambda given: given is None or isinstance(given, str) or callable(getattr(given, "invoke", None)),
    ),
]
FilePath: TypeAlias = Annotated[str | Path, Such("a path: a string or a Path, not empty", is_path)]
FilePaths: TypeAlias = FilePath | Sequence[FilePath]
"""One path, or several."""
if TYPE_CHECKING:
    ChromaPlace: TypeAlias = str | Path | ClientAPI | None
    """`None` (beside the database), a path, a server's URL, or a client."""
    Checkpointer: TypeAlias = BaseCheckpointSaver[Any]
    ItemStore: TypeAlias = BaseStore
    Tool: TypeAlias = BaseTool | dict[str, Any] | type | Callable[..., Any]
    """As `bind_tools` takes them."""
    MessageLike: TypeAlias = BaseMessage | MessageLikeRepresentation
    Counting: TypeAlias = TokenCounter | str | Callable[[str], int] | Callable[[list[BaseMessage]], int]
    """A counter, the name of a tiktoken encoding, or a function of one text or of a list of messages."""
    NewKey: TypeAlias = Callable[[], str | bytes]
    """Returns a key: a string or bytes of at least 16 bytes."""
    OptionalKey: TypeAlias = NewKey | None
else:  # what takes them asks for what it needs: their packages are slow to import, or not there
    ChromaPlace = Annotated[
        Any,
        Such(
            "None, a path, a URL or a chromadb client",
            lambda given: given is None or is_path(given) or hasattr(given, "get_or_create_collection"),
        ),
    ]
    Tool = Annotated[
        Any,
        Such(
            "a tool: a dict, a function, a class or a BaseTool",
            lambda given: isinstance(given, Mapping) or callable(given) or hasattr(given, "args_schema"),
        ),
    ]
    Checkpointer = ItemStore = MessageLike = Counting = Any
    NewKey = Annotated[Any, Such("a function that returns the key", callable, is_secret=True)]
    OptionalKey = Annotated[
        Any,
        Such("None or a function that returns the key", lambda given: given is None or callable(given), is_secret=True),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Limits a handle to its own track, with or without a read-only view of its parent's.

    Contexts, `search`, `facts` and `expand` of such a handle show nothing of other tracks. Calls that concern the whole
    session (`end`, `restore`, forgetting it) are refused.

        memory.session("run", track="researcher", scope=Scope(sight_tokens=800))
    """

    sight_tokens: Amount = 0
    """How many tokens of the parent's track each context and each search may show. 0 shows nothing."""
    parent: Name = DEFAULT_TRACK
    """The parent's track, which is that of the calling agent."""

    def sight_from(self, track: str) -> str | None:
        """The track that a handle on `track` can see besides its own, or `None`."""
        return self.parent if self.sight_tokens and self.parent != track else None
