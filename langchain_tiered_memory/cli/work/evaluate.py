"""The work of `tiered-memory eval`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from langchain_tiered_memory.cli.screen import out, print_json, progress, say
from langchain_tiered_memory.conversations import Conversation, read_conversations, sample_conversation
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.evaluation.measure import Measured, Outcome, measure, steps_of
from langchain_tiered_memory.evaluation.report import renderables
from langchain_tiered_memory.evaluation.summary import Summary, as_json, summarise
from langchain_tiered_memory.evaluation.vectors import CachedEmbeddings
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import TiktokenCounter, best_counter, encoding_file
from langchain_tiered_memory.sql.private_files import PRIVATE, create_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from langchain_tiered_memory.protocols import TokenCounter

_ENCODING = "cl100k_base"
"""What the published figures were counted with."""
_SUFFIXES = (".json", ".jsonl")


def evaluate_paths(
    paths: Sequence[Path],
    *,
    budgets: Sequence[int],
    cache: Path | None,
    rows: Path | None,
    no_embeddings: bool,
    to_json: bool,
) -> None:
    """Measure the conversations under `paths`, or the sample, and print the result.

    Raises:
        InvalidInputError: when a named file is no conversation, or none has questions.
    """
    groups = read_groups(paths)
    counter = _counter()
    embeddings = _embeddings(cache, no_embeddings=no_embeddings)
    if rows is not None:
        create_file(rows, PRIVATE)
        rows.write_text("", encoding="utf-8")
    summaries: list[Summary] = []
    for name, conversations in groups.items():
        measured: list[Measured] = []
        with progress(f"measuring {name}", sum(map(steps_of, conversations))) as step:
            for conversation in conversations:
                measured.append(measure(conversation, budgets, counter=counter, embeddings=embeddings, on_step=step))
                if rows is not None:
                    _append(rows, measured[-1].outcomes)
        summaries.append(summarise(name, measured))
        if not to_json:
            for part in renderables(summaries[-1]):
                out().print(part)
    if to_json:
        print_json({"counter": counter.fingerprint, "groups": [as_json(summary) for summary in summaries]})


def read_groups(paths: Sequence[Path]) -> dict[str, list[Conversation]]:
    """Conversations with questions, by the folder they are in; the sample where no path is given.

    Of a folder, files that are no conversations are passed over with a remark; a file that is named must be one.

    Raises:
        InvalidInputError: when a named file is no conversation, or nothing has questions.
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
                say(f"passed over: {error}", style="dim")
    asked = {name: [one for one in found if one.questions] for name, found in groups.items()}
    if not any(asked.values()):
        msg = f"no annotated questions in {', '.join(map(str, paths))}: a conversation needs `questions` to be measured"
        raise InvalidInputError(msg)
    return {name: found for name, found in asked.items() if found}


def _counter() -> TokenCounter:
    if encoding_file(_ENCODING) is not None:
        return TiktokenCounter(_ENCODING)
    counter = best_counter()
    say(f"{_ENCODING} is not at hand: tokens are counted by {counter.fingerprint}", style="yellow")
    return counter


def _embeddings(cache: Path | None, *, no_embeddings: bool) -> Embeddings | None:
    found = None if no_embeddings else resolve_embeddings("auto")
    if found is None:
        say("without embeddings: words only, and no dense methods", style="yellow")
        return None
    return CachedEmbeddings(found, path=cache)


def _append(rows: Path, outcomes: Iterable[Outcome]) -> None:
    with rows.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(outcome), ensure_ascii=False) + "\n" for outcome in outcomes)
