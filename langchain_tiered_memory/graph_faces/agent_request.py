"""Reads a request of `create_agent`: whose it is, what it sends besides messages, and what others changed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewChanges:
    """What middlewares around this one changed in the request alone: it is theirs, and not remembered."""

    before: tuple[BaseMessage, ...] = ()
    """Messages that the state does not have, in front of its last one."""
    behind: tuple[BaseMessage, ...] = ()
    """Messages that the state does not have, behind its last one."""
    edits: Mapping[str, BaseMessage] = field(default_factory=dict)
    """Messages of the state as the request words them, by id."""

    @property
    def any(self) -> bool:
        """Whether there is a change."""
        return bool(self.before or self.behind or self.edits)


def changes_of(held: Sequence[BaseMessage], requested: Sequence[BaseMessage]) -> ViewChanges:
    """How the messages of a request differ from those that the state holds.

    Messages that are missing are not looked for: to decide what a model is shown is this package's own work. Neither
    are results that LangChain made up for calls it could not read: the memory answers such calls itself.
    """
    if requested is held or (
        all(one is other for one, other in zip(requested, held, strict=False)) and (len(requested) == len(held))
    ):
        return ViewChanges()
    known = {message.id: message for message in held if message.id}
    last = max((place for place, message in enumerate(requested) if message.id in known), default=-1)
    before: list[BaseMessage] = []
    behind: list[BaseMessage] = []
    edits: dict[str, BaseMessage] = {}
    for place, message in enumerate(requested):
        held_one = known.get(message.id) if message.id else None
        if held_one is None:
            if not isinstance(message, ToolMessage):
                (behind if place > last else before).append(message)
        elif message is not held_one and message != held_one:
            edits[str(message.id)] = message
    return ViewChanges(before=tuple(before), behind=tuple(behind), edits=edits)


def schemas_of(tools: Sequence[Any], response_format: object) -> list[Any]:
    """All that a request sends as schemas: its tools, and those of its structured answer."""
    found = list(tools)
    specs = getattr(response_format, "schema_specs", None)
    if specs is None:
        spec = getattr(response_format, "schema_spec", None)
        specs = [spec] if spec is not None else []
    if specs:
        found += [
            {"name": spec.name, "description": spec.description or "", "parameters": spec.json_schema} for spec in specs
        ]
    elif response_format is not None:
        schema = getattr(response_format, "schema", response_format)
        if isinstance(schema, type | Mapping):
            found.append(schema)
    return found
