"""A session as one HTML document: its content as plain JSON, and the document with its style and script.

The content is read only through public verbs, and nothing is written. No message can become markup: Jinja escapes the
document's own texts, the content is JSON in a block that no parser leaves early, and the script writes it only as text.
A content security policy forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import BaseMessage, messages_from_dict

from langchain_tiered_memory._version import __version__
from langchain_tiered_memory.errors import CheckpointError, InvalidInputError, NotFoundError
from langchain_tiered_memory.messages.message_text import role_of, text_of
from langchain_tiered_memory.sessions.file_run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Template

    from langchain_tiered_memory.session import Session
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.outcomes import ShownView
    from langchain_tiered_memory.types.records import Entry
    from langchain_tiered_memory.types.runs import CheckpointInfo


Json: TypeAlias = dict[str, Any]

_MOST_CHARACTERS = 100_000
"""Characters of one message. A page shows the beginning of a longer message, and how long it is."""
_MOST_FACTS = 5000
_MOST_OUTCOMES = 1000
_MOST_TOUCHED = 200
_ENTRY_COLUMNS = (
    "seq", "id", "role", "name", "track", "at", "tokens", "kind", "task", "pinned", "revision", "group", "summary",
    "calls", "answers", "text", "length",
)  # fmt: skip
_SUMMARY_FIELDS = (
    "id", "level", "track", "state", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "source_tokens",
    "parent_id", "strategy", "text", "tokens", "degraded", "stale", "by_rules", "error", "model",
    "kept_identifiers", "information_loss", "from_tools", "created_at", "verdict", "verdict_note",
)  # fmt: skip
_FACT_FIELDS = (
    "id", "kind", "text", "seq", "at", "by", "speaker", "sources", "by_model", "mentions", "status", "superseded_by",
)  # fmt: skip
_FILE_FIELDS = (
    "path", "tier", "kind", "size", "accessed_at", "accesses", "pinned", "deleted",
)  # fmt: skip


def content_of(session: Session, *, contexts: Sequence[Context] = (), after: int = 0) -> Json:
    """Everything that a page shows of a session without a scope, with its messages after number `after`."""
    metrics = session.metrics()
    if not metrics.messages:
        msg = f"the session {session.session_id!r} has no message: there is nothing to show"
        raise NotFoundError(msg)
    entries = session.entries(after=after)
    known = {(one.track, one.id): one for one in (entries if not after else session.entries())}
    (views, outcomes), costs = _outcomes(session), session.costs()
    return {
        "about": {"session": session.session_id, "track": session.track, "version": __version__},
        "tracks": session.tracks(),
        "metrics": asdict(metrics) | {"ratios": [one.ratio for one in metrics.levels]},
        "entries": {"columns": _ENTRY_COLUMNS, "rows": [_entry_row(one) for one in entries]},
        "revisions": {one.seq: _revisions(session, one) for one in entries if one.revision},
        "summaries": [_only(one, _SUMMARY_FIELDS) for one in session.tree().summaries],
        "facts": [_only(one, _FACT_FIELDS) for one in session.facts(k=_MOST_FACTS, superseded=True)],
        "facts_cut": _MOST_FACTS,
        "views": views,
        "outcomes": outcomes,
        "checkpoints": [_checkpoint(session, info, known) for info in session.checkpoints()],
        "contexts": [_context(one, session.track, known) for one in contexts],
        "tasks": [asdict(one) for one in session.tasks()],
        "costs": asdict(costs) | {"rows": [asdict(one) | {"paid": one.paid} for one in costs.rows]},
        **_files(session),
    }


def _only(record: object, names: Iterable[str]) -> Json:
    return {name: getattr(record, name) for name in names}


def _entry_row(one: Entry) -> list[Any]:
    return [
        one.seq, one.id, one.role, one.name, one.track, one.at, one.tokens, one.kind, one.task, int(one.pinned),
        one.revision, one.group, one.summary_id, one.calls, one.answers, one.text[:_MOST_CHARACTERS], len(one.text),
    ]  # fmt: skip


def _revisions(session: Session, entry: Entry) -> list[str]:
    """The earlier wordings of an edited message. None if its id is ambiguous."""
    with suppress(InvalidInputError):
        return [text_of(one)[:_MOST_CHARACTERS] for one in session.revisions(entry.id)]
    return []


def _outcomes(session: Session) -> tuple[list[Json], list[Json]]:
    """What views showed, each once, and the decisions, which refer to it by place."""
    places: dict[tuple[ShownView, str], int] = {}

    def place_of(view: ShownView | None, text: str) -> int | None:
        return None if view is None else places.setdefault((view, text), len(places))

    told: list[Json] = []
    for outcome in session.outcomes(limit=_MOST_OUTCOMES):
        with suppress(NotFoundError):  # newer ones took its place meanwhile
            diff = session.diff(outcome.id)
            told.append(
                asdict(outcome)
                | {
                    "came": [asdict(one) for one in diff.came],
                    "before": place_of(diff.before, diff.text_before),
                    "after": place_of(diff.after, diff.text_after),
                }
            )
    return [asdict(view) | {"text": text} for view, text in places], told


def _said(messages: Iterable[BaseMessage], track: str, known: dict[tuple[str, str], Entry]) -> list[Any]:
    """Messages as they were: by number if they equal the transcript's, else word for word."""
    told: list[Any] = []
    for message in messages:
        text = text_of(message)
        entry = known.get((track, message.id or ""))
        if entry is not None and entry.text == text:
            told.append(entry.seq)
        else:
            told.append({"role": role_of(message), "text": text[:_MOST_CHARACTERS], "length": len(text)})
    return told


def _context(context: Context, track: str, known: dict[tuple[str, str], Entry]) -> Json:
    guard = asdict(context.guard)
    return {
        **_only(context, ("tokens", "raw_tokens", "max_tokens", "repairs", "stable_messages")),
        "sections": [asdict(one) for one in context.sections],
        "messages": _said(context.messages, track, known),
        "guard": guard | {"limit_tokens": context.guard.window.limit, "allowed_tokens": context.guard.window.allowed},
    }


def _checkpoint(session: Session, info: CheckpointInfo, known: dict[tuple[str, str], Entry]) -> Json:
    told = asdict(info)
    try:
        read = session.read_checkpoint(info.id)
        conversation = messages_from_dict(list(read.conversation))
    except (CheckpointError, ValueError, KeyError, TypeError) as error:
        return told | {"damaged": str(error)}
    state, project = read.context_state, read.project_state
    names = ("view", "zone", "used_tokens", "limit_tokens", "window_tokens", "left_out", "pruning")
    return told | {
        "state": {name: state[name] for name in names if name in state},
        "phase": project.get("phase"),
        "given": project.get("given"),
        "tiers": project.get("tiers"),
        "tasks": [{"id": one.id, "state": one.state} for one in read.tasks],
        "pinned": list(read.state.pinned_ids),
        "file_checksums": dict(read.file_checksums),
        "messages": _said(conversation, info.track, known),
    }


def _files(session: Session) -> Json:
    """Files in their tiers, files touched by calls, and sizes of this process's contexts."""
    run = Run(session.core, roots=None, critical=(), background=False)
    report, last = run.report(), run.last_report()
    return {
        "files": [_only(one, _FILE_FIELDS) for one in run.files()],
        "tiers": asdict(report.sizes) | {"compression": report.sizes.compression},
        "last_run": last
        and {
            "started_at": last.started_at,
            "at": last.at,
            "timings": {name: asdict(one) for name, one in last.timings.items()},
            "alerts": [asdict(one) for one in last.alerts],
        },
        "touched": [asdict(one) for one in session.accessed_files(limit=_MOST_TOUCHED)],
        "sizes": [asdict(one) for one in report.contexts],
    }


_SCRIPTS = ("base.js", "data.js", "list.js", "messages.js", "tree.js", "facts.js", "calls.js", "decisions.js",
            "figures.js", "live.js", "start.js")  # fmt: skip
"""In the order of a page's only script."""
_UNPAIRED = re.compile("[\ud800-\udfff]")
_ESCAPED = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def document(content: Mapping[str, Any], *, live: bool = False) -> str:
    """The page for the result of `content_of`. A `live` one, which `serve` shows, may ask its own server for more."""
    return _template("page.html").render(
        content=content,
        script=script(),
        style=style(),
        json=embedded({**content, "live": live}),
        policy=policy(live=live),
    )


def listing(sessions: list[dict[str, str]], *, more: str) -> str:
    """The first page of `serve`: the sessions of a database, each with its page's address, and how many are not."""
    return _template("sessions.html").render(sessions=sessions, more=more, style=style(), policy=policy(live=False))


def policy(*, live: bool) -> str:
    """The Content-Security-Policy of a page: only its own script and style, by their digests, and no requests.

    A live page may send requests to its own server.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_digest(script())}",
            f"style-src {_digest(style())}",
            "connect-src 'self'" if live else "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def embedded(value: object) -> str:
    """JSON that no HTML parser takes for anything else, in ASCII."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    for character, escape in _ESCAPED:
        text = text.replace(character, escape)
    return _UNPAIRED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def script() -> str:
    """The only script of a page."""
    parts = "\n".join(_asset(name) for name in _SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


@cache
def style() -> str:
    """The only style sheet of a page."""
    return _asset("style.css")


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - nobody else needs it

    loader = FunctionLoader(_asset)
    made: Template = Environment(loader=loader, autoescape=True, undefined=StrictUndefined).get_template(name)
    return made
