"""Reads runs that were exported from LangSmith, as conversations: one for each thread, else for each trace.

A run of an agent carries the conversation so far, so what one run repeats of those before it is left out. Of traces
the root runs count; where a file has none of them, its model runs do.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

from langchain_tiered_memory.conversations.annotated import listed_conversation
from langchain_tiered_memory.conversations.turns import Conversation, Located, message_of
from langchain_tiered_memory.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_THREADS = ("thread_id", "session_id", "conversation_id")
"""Keys of a run's metadata that LangSmith groups threads by."""
_ASKED = ("input", "question", "query", "text")
_ANSWERED = ("output", "answer", "result", "text")


def is_run(row: Mapping[str, Any]) -> bool:
    """Whether this is a run of LangSmith's."""
    return isinstance(row.get("run_type"), str) and "inputs" in row


def conversations_of_runs(rows: Sequence[Located]) -> Iterator[Conversation]:
    """The conversations of exported runs, each in the order of their starts."""
    for row in rows:
        if not isinstance(row.value, dict) or not is_run(row.value):
            msg = f"{row.place}: expected a run with `run_type` and `inputs`, like the first"
            raise InvalidInputError(msg)
    models = [row for row in rows if row.get("run_type") == "llm"]
    roots = [row for row in rows if not row.get("parent_run_id")] or models
    threads: dict[str, list[Located]] = {}
    for row in sorted(roots, key=lambda one: str(one.get("start_time") or "")):
        threads.setdefault(_thread_of(row), []).append(row)
    some = False
    for name, runs in threads.items():
        turns = _stitched(runs, name)
        if turns:
            some = True
            yield listed_conversation(turns, name=name, questions=None)
    if not some:
        msg = f"{rows[0].place}: none of its {len(rows)} runs carries messages: export root runs or model runs"
        raise InvalidInputError(msg)


def _thread_of(row: Located) -> str:
    about = (row.get("extra") or {}).get("metadata") or {}
    named = next((about[key] for key in _THREADS if about.get(key)), None)
    return str(named or row.get("trace_id") or row.get("id") or "runs")


def _stitched(runs: Sequence[Located], thread: str) -> list[Located]:
    """The messages of a thread's runs in order, each once."""
    held: list[tuple[str, Located]] = []
    for run in runs:
        came = [(_words(message), message) for message in _messages_of(run)]
        words = [one for one, _ in came]
        before = [one for one, _ in held]
        shared = next((n for n in range(min(len(before), len(words)), 0, -1) if before[-n:] == words[:n]), 0)
        for said, message in came[shared:]:
            when = run.get("start_time") if message.type in ("human", "system") else run.get("end_time")
            told: dict[str, Any] = convert_to_openai_messages([message])[0]
            row = {"message": told | {"id": message.id}, "id": message.id, "at": when or run.get("start_time")}
            held.append((said, Located(place=run.place, value=row)))
    seen: Counter[str] = Counter()
    for said, located in held:
        seen[said] += 1
        if not located.value["id"]:  # by its words: another export of the thread gives it the same
            located.value["id"] = hashlib.sha256(f"{thread}\0{said}\0{seen[said]}".encode()).hexdigest()[:16]
    unique = {located.value["id"]: located for _, located in held}
    return list(unique.values())


def _words(message: BaseMessage) -> str:
    said = [message.type, message.id or "", message.content]
    return json.dumps(said, sort_keys=True, ensure_ascii=False, default=str)


def _messages_of(run: Located) -> list[BaseMessage]:
    """What a run was given and gave; of a graph's state the answer alone, which repeats the question."""
    given, gave = _listed(run.get("inputs"), _ASKED, "human"), _listed(run.get("outputs"), _ANSWERED, "ai")
    words = [_words(one) for one in gave]
    return gave if given and words[: len(given)] == [_words(one) for one in given] else [*given, *gave]


def _listed(value: Any, texts: Sequence[str], role: str) -> list[BaseMessage]:  # noqa: ANN401 - JSON
    if not isinstance(value, dict):
        return []
    found = value.get("messages")
    if isinstance(found, list):
        return _flat(found)
    generations = value.get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        return _flat([generations.get("message") or {"role": role, "content": generations.get("text") or ""}])
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _flat([choices[0].get("message")])
    output = value.get("output")
    if isinstance(output, dict):
        return _flat([output])
    text = next((value[key] for key in texts if isinstance(value.get(key), str)), None)
    return _flat([{"role": role, "content": text}]) if text else []


def _flat(rows: Sequence[Any]) -> list[BaseMessage]:
    found: list[BaseMessage] = []
    for row in rows:
        if isinstance(row, list):
            found += _flat(row)
        elif isinstance(row, dict):
            found += _read(row)
    return found


def _read(row: Mapping[str, Any]) -> list[BaseMessage]:
    """A message as LangChain writes it down whole, as a constructor or as a dict; nothing for what is none."""
    fields = row.get("kwargs") if row.get("type") == "constructor" else row
    if not isinstance(fields, dict):
        return []
    role = fields.get("role") or {"AIMessageChunk": "ai"}.get(str(fields.get("type")), fields.get("type"))
    try:
        return [message_of(row if "data" in row else fields | {"role": role})]
    except InvalidInputError:
        return []
