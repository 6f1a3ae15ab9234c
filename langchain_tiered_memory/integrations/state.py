"""What the nodes keep in a graph's state: one key with plain, versioned JSON, without messages or summaries.

A message anywhere in a state update would be streamed to the user and repeated in every LangGraph checkpoint. Under
strict msgpack, a dataclass comes back as a dict. So the state has only figures and ids. Text stays in the memory.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


STATE_KEY = "tiered_memory"
STATE_VERSION = 1
_SAID_BESIDE = ("type", "name", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")


def packed(numbers: Collection[int]) -> str:
    """Numbers from 0 up as JSON: a compressed bit map, because every state of the graph repeats it.

    It takes at most one byte for six messages, and far less if there is any regularity.
    """
    bits = bytearray(max(numbers, default=-1) // 8 + 1)
    for number in numbers:
        bits[number // 8] |= 1 << number % 8
    return base64.b64encode(zlib.compress(bits, 9)).decode("ascii")


def unpacked(written: Iterable[Iterable[int]] | str) -> frozenset[int]:
    """The numbers that `packed` wrote; earlier versions wrote few as the first and last of each run."""
    if not isinstance(written, str):
        return frozenset(number for first, last in written for number in range(int(first), int(last) + 1))
    bits = zlib.decompress(base64.b64decode(written))
    return frozenset(8 * at + bit for at, byte in enumerate(bits) if byte for bit in range(8) if byte >> bit & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedPart:
    """The part of a branch that was moved out of graph state. It is still on the branch."""

    seq: int
    """Number of the last message that was moved. Everything up to it is on the branch, except `off`."""
    last_id: str
    """Its id in the transcript. Empty if it was forgotten since."""
    count: int
    off: frozenset[int] = frozenset()
    """Messages up to `seq` that were not moved: on other branches, or still in state."""

    def holds(self, seq: int) -> bool:
        """Whether the message of that number was moved."""
        return seq <= self.seq and seq not in self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRecord:
    """The message list of a state when it was last stored, so that a change can be seen without reading it.

    The record is in the state itself, so a fork or a step back in time has the record of that moment.
    """

    track: str
    count: int
    """How many messages of the list were stored."""
    ids: str
    """Digest of their ids."""
    said: str
    """Digest of their words."""
    seq: int
    """Number of the newest message of the track at that time."""
    epoch: int
    """The session's epoch at that time. Edits, pins and removals raise it."""
    whole: bool
    """Whether the list, with its archived part, was all that the track had."""
    archived: ArchivedPart | None = None
    forgotten: tuple[str, ...] = ()
    """Ids of the list's forgotten messages. The state still has them, and the transcript must not."""
    apart: bool = False
    """Whether the list is a separate conversation, such as a sub-agent's task, whatever else its track has."""
    again: Mapping[str, str] = field(default_factory=dict)
    """The transcript's ids of messages that were removed from the list and put back at its end, by their ids there."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        written = asdict(self)
        if self.archived is not None:
            written["archived"]["off"] = packed(self.archived.off)
        written["forgotten"] = list(self.forgotten)
        for name in ("apart", "again"):  # what earlier versions do not know is written only where it says something
            if not written[name]:
                del written[name]
        return written

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> BranchRecord:
        """A record as `to_json` wrote it."""
        fields = dict(written)
        archived = fields.get("archived")
        if archived is not None:
            known = {name: archived[name] for name in ("seq", "last_id", "count")}
            fields["archived"] = ArchivedPart(**known, off=unpacked(archived["off"]))
        return cls(**fields | {"forgotten": tuple(fields.get("forgotten", ()))})


def merged(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> dict[str, Any]:
    """The reducer of `tiered_memory`: the newest value of each part replaces the old one.

    Branches and plans are replaced one by one. Nodes that run side by side write different parts or the same values.
    """
    old, new = current(left), current(right)
    found = {**old, **new}
    for part in ("branches", "plans"):
        if part in old or part in new:
            found[part] = {**old.get(part, {}), **new.get(part, {})}
    return found


class TieredState(TypedDict, total=False):
    """Mix-in for a graph's state: `class State(MessagesState, TieredState): ...`."""

    tiered_memory: Annotated[dict[str, Any], merged]
    """The nodes' own record: plain JSON that is not meant for readers."""


def current(written: Mapping[str, Any] | None) -> dict[str, Any]:
    """The value of a state's key. Empty if nothing was written yet."""
    if not written:
        return {}
    version = written.get("v") if isinstance(written, Mapping) else None
    if not isinstance(version, int) or version < 1:
        msg = f"the state's key {STATE_KEY!r} is not what the memory's nodes wrote there: leave it to them"
        raise InvalidInputError(msg)
    if version > STATE_VERSION:
        msg = f"this graph state was written by a later langchain-tiered-memory (state version {version}): upgrade it"
        raise InvalidInputError(msg)
    return dict(written)


def branch_in(state: object, messages_key: str) -> BranchRecord | None:
    """The record of a message list. `None` if it was not stored yet."""
    written = current(part_of(state, STATE_KEY)).get("branches", {}).get(messages_key)
    return BranchRecord.from_json(written) if written is not None else None


def update_with(messages_key: str | None = None, record: BranchRecord | None = None, **parts: object) -> dict[str, Any]:
    """A state update for the key: the record of a branch if there is a list, and further parts in JSON."""
    value: dict[str, Any] = {"v": STATE_VERSION, **parts}
    if messages_key is not None and record is not None:
        value["branches"] = {messages_key: record.to_json()}
    return {STATE_KEY: value}


def part_of(state: object, key: str) -> Any:  # noqa: ANN401 - whatever the user keeps there
    """The value of a state's key. States are dicts, pydantic models or dataclasses."""
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def zone_in(state: object) -> str:
    """Return the zone that `guard_node` found last, for `add_conditional_edges`. It is `safe` before the node ran.

    Args:
        state: The state of the graph.
    """
    return str(current(part_of(state, STATE_KEY)).get("guard", {}).get("zone", "safe"))


def digests_of(messages: Sequence[BaseMessage]) -> tuple[str, str]:
    """Digests of the ids and of the words of messages. They are cheap, because they only have to show a change."""
    return digests_at(messages, len(messages))[1]


def digests_at(messages: Sequence[BaseMessage], count: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """`digests_of` the first `count` messages and of all, in one pass."""
    ids, said = hashlib.blake2b(digest_size=12), hashlib.blake2b(digest_size=12)
    first = (ids.hexdigest(), said.hexdigest())
    for number, message in enumerate(messages, start=1):
        fields = message.__dict__  # pydantic's own attribute access takes ten times as long
        ids.update(f"{fields['id']}\0".encode("utf-8", "surrogatepass"))
        content = fields["content"]
        # Texts as they are: to spell out a long one takes ten times as long.
        text = content if isinstance(content, str) else repr(content)
        beside = repr([len(text), *map(fields.get, _SAID_BESIDE)])
        said.update(f"{beside}{text}".encode("utf-8", "surrogatepass"))
        if number == count:
            first = (ids.hexdigest(), said.hexdigest())
    return first, (ids.hexdigest(), said.hexdigest())


def begins_with(messages: Sequence[BaseMessage], record: BranchRecord) -> bool:
    """Whether a list has all messages of a record, in the same places."""
    return len(messages) >= record.count and digests_at(messages, record.count)[0][0] == record.ids
