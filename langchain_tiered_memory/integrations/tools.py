"""The memory as tools of an agent: `recall`, `expand`, `pin`.

They work on the session of the run, which is the config's `thread_id`. With `across`, the search can also look into
other sessions of the same user, if the run names the user. Results come back as quoted data within a limit of tokens.
An unknown id gives an answer that the model can act on, not an exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from langchain_core.runnables import RunnableConfig  # noqa: TC002 - tools find their config by this annotation
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, Field

from langchain_tiered_memory.across.searching import search_across
from langchain_tiered_memory.across.user_facts import facts_of_user
from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import off_loop_function
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, SettingsError
from langchain_tiered_memory.integrations.checks import Memory  # noqa: TC001 - annotations are read at the border
from langchain_tiered_memory.integrations.graph.tracks import keeps_to_itself, line_of_agent, place_of, user_of
from langchain_tiered_memory.integrations.tool_texts import page_of, recalled, recalled_elsewhere
from langchain_tiered_memory.text.fencing import plain_label
from langchain_tiered_memory.types.arguments import Count, Name, Scope, SessionId
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.session import Session

_LEAST_TOKENS = 200
_MOST_FINDS = 50
_MAX_QUOTED_CHARS = 300
_FOUND_BY = "as the conversation's record or a result of `recall` names it"
_LABELS = re.compile(r"(?:(?:messages?|summary|id)\s{1,40}){0,4}", re.IGNORECASE)
"""Words that models copy before an id."""
_BEFORE = " \t\r\n\"'`(["
_BEHIND = " \t\r\n\"'`)].,"
"""Quotes and brackets that they put around it."""


class RecallInput(BaseModel):
    """Arguments of `recall`."""

    query: str = Field(
        description="What to look for: a question in full, or the words, names, numbers and identifiers that were used."
    )
    limit: int = Field(default=8, description=f"How many results at most, 1 to {_MOST_FINDS}.")


class WideRecallInput(RecallInput):
    """Arguments of `recall` if it may look into the user's other conversations."""

    scope: Literal["conversation", "user"] = Field(
        default="conversation",
        description="Where to look: in this conversation, or (`user`) in all other conversations with this user.",
    )


class ExpandInput(BaseModel):
    """Arguments of `expand`."""

    id: str = Field(description=f"Id of a summary or a message, {_FOUND_BY}.")
    depth: int = Field(
        default=1, description="Levels to go down from a summary; 0 goes all the way down to the messages themselves."
    )
    question: str = Field(
        default="",
        description="What you want to know from it: the messages that answer this are shown instead of pages.",
    )
    page: int = Field(default=1, description="Which page, if there is more than one; 1 is the first.")


class PinInput(BaseModel):
    """Arguments of `pin`."""

    id: str = Field(description=f"Id of a message, {_FOUND_BY}.")
    keep: bool = Field(default=True, description="False unpins a message that was pinned before.")


@checked(SettingsError)
def memory_tools(
    memory: Memory,
    *,
    session_id: SessionId | None = None,
    user: Name | None = None,
    track: Name | None = None,
    scope: Scope | None = None,
    max_tokens: Count = 2000,
    user_key: Name = "user_id",
    across: bool = False,
) -> list[BaseTool]:
    """Return the tools `recall`, `expand` and `pin`, in this order.

    Args:
        memory: The memory.
        session_id: The session that they work on. By default, the config's `thread_id`.
        user: The user of the session. By default, the one that `user_key` names. Another user's session is refused.
        track: The agent's track. By default, its place in the graph decides; outside a graph, it is `main`.
        scope: What they may show and change of the session. With a scope, the tools of a sub-agent work on its own
            track, even if it has no memory of its own. By default, the tools of a sub-agent on its own track keep to
            that track, and those of any other agent search all tracks.
        max_tokens: The most tokens of one result.
        user_key: The key of the config's `configurable`, or of `Runtime.context`, that names the user.
        across: Whether `recall` also accepts `scope="user"`, which searches the user's other sessions, facts about the
            user first. It finds nothing if the run names no user, or for an agent that keeps to its own track.

    Raises:
        SettingsError: if `max_tokens` is too small for a result.
    """
    if max_tokens < _LEAST_TOKENS:
        msg = f"max_tokens is {max_tokens}: a tool's result needs at least {_LEAST_TOKENS}"
        raise SettingsError(msg)
    verbs = _Verbs(
        memory=memory,
        session_id=session_id,
        user=user,
        track=track,
        scope=scope,
        max_tokens=max_tokens,
        user_key=user_key,
    )
    wide = f"{_RECALL} {_ACROSS}"
    return [
        tool_of(verbs.recall, *((WideRecallInput, wide) if across else (RecallInput, _RECALL))),
        tool_of(verbs.expand, ExpandInput, _EXPAND),
        tool_of(verbs.pin, PinInput, _PIN),
    ]


_RECALL = (
    "Search the whole record of this conversation, including what is no longer shown: earlier messages, tool results "
    "and summaries of them. Use it before you say that you do not know, and before you ask the user or run a tool "
    "again for what was said, decided or found earlier. It returns dated quotes with their ids, for `expand` and `pin`."
)
_ACROSS = (
    'With the scope "user" it searches the other conversations with this user instead, for what they said about '
    "themselves, or wanted, at another time. That may be outdated, or about something else."
)
_EXPAND = (
    "Show what a summary of this conversation stands for, or the whole of a message that is shown in part. Use it when "
    "you need the exact words of something that a summary mentions."
)
_PIN = (
    "Keep a message of this conversation in view from now on, word for word. Use it sparingly, for what must not be "
    "forgotten, such as a requirement or a decision by the user. Unpin it with `keep` false when it no longer holds."
)


def tool_of(verb: Callable[..., str], schema: type[BaseModel], description: str) -> BaseTool:
    """A function as a sync and async tool."""
    return StructuredTool.from_function(
        func=verb,
        coroutine=off_loop_function(verb),
        name=verb.__name__,
        description=description,
        args_schema=schema,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verbs:
    """What the tools do."""

    memory: TieredMemory
    session_id: str | None
    user: str | None
    track: str | None
    scope: Scope | None
    max_tokens: int
    user_key: str

    def recall(self, query: str, config: RunnableConfig, limit: int = 8, scope: str = "conversation") -> str:
        # A model that asks for too many finds, or for none, still gets an answer.
        session, most = self._session(config), min(max(limit, 1), _MOST_FINDS)
        if scope == "user":
            return self._elsewhere(session, query, most)
        hits = session.search(query, k=most)
        if not hits:
            return f"Nothing in the record of this conversation matches {quoted(query)}. Try other words."
        return recalled(hits, max_tokens=self.max_tokens, count=self._count)

    def _elsewhere(self, session: Session, query: str, most: int) -> str:
        """What other sessions of the user say. The user must be the one that the run names and the session's own."""
        user, runtime = session.core.user, session.core.checked
        if user is None or session.core.scope is not None:
            return "Other conversations cannot be searched from here. Look in this one."
        besides = session.session_id
        facts = facts_of_user(runtime, user, query, k=most, besides=besides)
        hits = search_across(runtime, user, query, k=most, besides=besides)
        if not facts and not hits:
            return f"Nothing in other conversations with this user matches {quoted(query)}. Try other words."
        return recalled_elsewhere(facts, hits, max_tokens=self.max_tokens, count=self._count)

    def expand(self, id: str, config: RunnableConfig, depth: int = 1, page: int = 1, question: str = "") -> str:  # noqa: A002 - the model's word for it
        session = self._session(config)

        def shown(name: str) -> str:
            if question.strip():
                return session.reread(name, query=question, max_tokens=self.max_tokens).text
            found = session.expand(name, depth=depth if depth > 0 else None)
            text = page_of(found, page=page, max_tokens=self.max_tokens, count=self._count)
            return f"{quoted(id)} has fewer than {str(page)[:20]} pages." if text is None else text

        return _answer(id, shown)

    def pin(self, id: str, config: RunnableConfig, keep: bool = True) -> str:  # noqa: A002, FBT001, FBT002 - as above; tools call by name
        session = self._session(config)

        def done(name: str) -> str:
            found = session.expand(name, depth=1)
            # A summary gives what it stands for.
            if len(found) != 1 or not isinstance(found[0], Entry) or not _is_named(found[0], name):
                return f"{quoted(id)} is a summary. `expand` it, and pin one of its messages."
            (session.pin if keep else session.unpin)(found[0].id)
            return f"Message {quoted(found[0].id)} {'stays in view from now on' if keep else 'is no longer pinned'}."

        return _answer(id, done)

    def _session(self, config: RunnableConfig) -> Session:
        configurable = config.get("configurable", {})
        named = self.session_id or configurable.get("thread_id")
        if not named:
            msg = (
                "the memory's tools do not know their session: run them with a thread_id in the config's configurable, "
                "or make them with memory_tools(memory, session_id=...)"
            )
            raise SettingsError(msg)
        track, scope = self._seen(config, str(named))
        return self.memory.session(
            str(named),
            user=self.user if self.user is not None else user_of(config, self.user_key),
            track=self.track or track or DEFAULT_TRACK,
            scope=self.scope or scope,
        )

    def _seen(self, config: RunnableConfig, session_id: str) -> tuple[str | None, Scope | None]:
        """The calling agent's track, and what it may see if it is a sub-agent on its own track."""
        if not config.get("configurable", {}).get("thread_id"):
            return None, None
        place = replace(place_of(config, self.user_key), session_id=session_id)
        if not place.parts:
            return None, None
        track = line_of_agent(self.memory, place, None, (), track=self.track).track
        if self.scope is not None:
            return track, None
        if session_id != str(config["configurable"]["thread_id"]):
            return None, None
        transcript = self.memory.core.runtime.store.transcript
        ref = transcript.find(session_id)
        # An agent that goes on with the conversation above it has said nothing on a track of its own.
        if ref is None or track not in transcript.tracks(ref) or not keeps_to_itself(place, track):
            return None, None
        return track, Scope()

    @property
    def _count(self) -> Callable[[str], int]:
        return self.memory.core.runtime.counter.count_text


def _is_named(entry: Entry, name: str) -> bool:
    """Whether the message itself is named, by its id or number."""
    return entry.id.startswith(name) or name == str(entry.seq)


def _names(wanted: str) -> list[str]:
    """The id as the model gave it, then without what it copied with it."""
    bare = _LABELS.sub("", wanted.lstrip(_BEFORE).rstrip(_BEHIND), count=1).lstrip(_BEFORE)
    span = bare.partition(",")[0]
    return [one for one in dict.fromkeys([wanted, bare, span]) if one]


def quoted(said: str) -> str:
    """An id, a path or a question from a model, or from whoever speaks through it, quoted back."""
    return f"'{plain_label(said, max_chars=_MAX_QUOTED_CHARS)}'"


def _answer(wanted: str, look: Callable[[str], str]) -> str:
    """The result for the first form of an id that exists, or else a text that a model can act on."""
    for name in _names(wanted):
        try:
            return look(name)
        except NotFoundError:
            continue
        except InvalidInputError as error:
            return f"{quoted(wanted)} cannot be used: {plain_label(str(error), max_chars=_MAX_QUOTED_CHARS)}"
    return f"There is no message or summary {quoted(wanted)} in this conversation. Take an id that `recall` shows."
