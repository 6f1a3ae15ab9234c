"""What a user said in other threads: is it in the request, and what does it cost?

Each dated sitting of a conversation becomes a thread of its own, all of one user; each question is asked in a new
thread. Beside the memory with its section switched off and on, and its tool `recall` with the scope `user`, stands
langmem's way: every message is kept as a memory in LangGraph's `InMemoryStore`, and its search tool is asked. So does
mem0, where it is installed: messages are added with `infer=False`, and searched. All have the same embedder, and no
model: what a model would write down of a thread is what that model is worth.

    python -m benchmarks.across_threads conversations/ --budgets 1000,2000,4000,8000
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from benchmarks.asked_conversations import read_groups
from benchmarks.cached_vectors import CachedEmbeddings
from benchmarks.reporting import Grid, Report, arguments, finish, numbers, show
from langchain_tiered_memory import OtherSessions, Settings, TieredMemory, TreeSettings, memory_tools
from langchain_tiered_memory.models.embeddings import resolve_embeddings
from langchain_tiered_memory.models.token_counters import best_counter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.conversations import Conversation, Question
    from langchain_tiered_memory.protocols import TokenCounter

BUDGETS = (1000, 2000, 4000, 8000)
SHARES = (0.15, 0.4)
"""Of the section: its default, and for questions that other threads answer."""
_USER = "zoe"
_NAMESPACE = ("memories",)
_LIMIT = 10
"""Of langmem's search tool, as it is by default."""
_MOST_FINDS = 50
"""That a tool is asked for, so that the budget decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one method put before a model for one question."""

    method: str
    budget: int
    tokens: int
    """Of the whole request, or of what a tool answered."""
    whole: bool
    """Whether every message that answers stands there whole."""
    named: bool
    """Whether of every such message at least the passage that was found stands there."""


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _judged(method: str, budget: int, text: str, needed: dict[str, str], *, tokens: int, named: set[str]) -> Asked:
    """Whether the messages that a question needs stand in a text; `named` are those of which a part does."""
    there = _squeezed(text)
    whole = {one for one, said in needed.items() if _squeezed(said) in there}
    return Asked(
        method=method,
        budget=budget,
        tokens=tokens,
        whole=whole == needed.keys(),
        named=whole | (named & needed.keys()) == needed.keys(),
    )


def _filled(conversation: Conversation, embeddings: Embeddings | None) -> TieredMemory:
    """A memory with a thread for each sitting."""
    memory = TieredMemory.open(None, embeddings=embeddings, settings=Settings(tree=TreeSettings(background=False)))
    for number, sitting in enumerate(conversation.sittings):
        turns = [turn for turn in conversation.turns if turn.sitting == number]
        session = memory.session(f"{number} {sitting.id}", user=_USER)
        session.add_messages([turn.message for turn in turns], at=[turn.at or sitting.at for turn in turns])
    memory.flush()
    return memory


def _of_memory(
    memory: TieredMemory, question: Question, needed: dict[str, str], budgets: Sequence[int]
) -> Iterator[Asked]:
    session = memory.session(f"asks {question.id}", user=_USER)
    session.add_messages([HumanMessage(question.text)])
    for share in (None, *SHARES):
        if share is not None:
            memory.sections.register(OtherSessions(share=share))
        for budget in budgets:
            context = session.context(max_tokens=budget)
            section = context.section("other_sessions")
            sources = section.sources if section is not None else ()
            named = {message_id for one in sources for message_id in one.message_ids}
            text = "\n".join(str(message.content) for message in context.messages)
            method = "section off" if share is None else f"section on, {share:.0%}"
            yield _judged(method, budget, text, needed, tokens=context.tokens, named=named)
    memory.sections.remove("other_sessions")
    count = memory.core.runtime.counter.count_text
    config: Any = {"configurable": {"thread_id": session.session_id, "user_id": _USER}}
    for budget in budgets:
        recall = memory_tools(memory, across=True, max_tokens=budget)[0]
        answer = str(recall.invoke({"query": question.text, "scope": "user", "limit": _MOST_FINDS}, config))
        yield _judged("recall(scope='user')", budget, answer, needed, tokens=count(answer), named=set())


def _of_langmem(
    store: InMemoryStore,
    question: Question,
    needed: dict[str, str],
    budgets: Sequence[int],
    counter: TokenCounter,
) -> Iterator[Asked]:
    from langmem import create_search_memory_tool  # noqa: PLC0415 - an extra of the benchmarks

    search = create_search_memory_tool(namespace=_NAMESPACE, store=store)
    for limit, method in (
        (_LIMIT, "langmem's search tool"),
        (_MOST_FINDS, f"langmem's search tool, {_MOST_FINDS} finds"),
    ):
        found = json.loads(search.invoke({"query": question.text, "limit": limit}))
        for budget in budgets:
            shown: list[str] = []
            for one in found:
                text = json.dumps(one, ensure_ascii=False)
                if counter.count_text("\n".join([*shown, text])) <= budget:
                    shown.append(text)
            answer = "\n".join(shown)
            said = "\n".join(str(json.loads(one)["value"]["content"]) for one in shown)
            yield _judged(method, budget, said, needed, tokens=counter.count_text(answer), named=set())


def _kept_by_langmem(conversation: Conversation, embeddings: Embeddings, dimensions: int) -> InMemoryStore:
    store = InMemoryStore(index={"dims": dimensions, "embed": embeddings, "fields": ["content"]})
    for turn in conversation.turns:
        store.put(_NAMESPACE, turn.id, {"content": turn.text, "speaker": turn.speaker, "at": str(turn.at)})
    return store


class _AsDocuments(Embeddings):
    """An embedder that takes a text for a document whatever it is asked: mem0 embeds messages as questions."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._inner.embed_documents([text])[0]


def _kept_by_mem0(conversation: Conversation, embeddings: Embeddings, dimensions: int, folder: str) -> Any:  # noqa: ANN401 - no dependency
    """mem0's memory with every message as it was said; `None` where mem0 is not installed."""
    if importlib.util.find_spec("mem0") is None:
        return None
    os.environ["MEM0_TELEMETRY"] = "False"  # it is read at the import alone
    os.environ.setdefault("MEM0_DIR", folder)
    vectors = {"path": folder, "embedding_model_dims": dimensions, "on_disk": True}
    memory = importlib.import_module("mem0").Memory.from_config(
        {
            "embedder": {"provider": "langchain", "config": {"model": _AsDocuments(embeddings)}},
            "llm": {"provider": "langchain", "config": {"model": FakeListChatModel(responses=["nothing"])}},
            "vector_store": {"provider": "qdrant", "config": vectors},
            "history_db_path": ":memory:",
        }
    )
    for turn in conversation.turns:
        role = "assistant" if turn.message.type == "ai" else "user"
        memory.add([{"role": role, "content": turn.text}], user_id=_USER, infer=False, metadata={"at": str(turn.at)})
    return memory


def _of_mem0(
    memory: Any,  # noqa: ANN401 - no dependency
    question: Question,
    needed: dict[str, str],
    budgets: Sequence[int],
    counter: TokenCounter,
) -> Iterator[Asked]:
    found = memory.search(question.text, filters={"user_id": _USER}, top_k=_MOST_FINDS)["results"]
    for budget in budgets:
        shown: list[str] = []
        for one in found:
            line = f"- {one['memory']} ({(one.get('metadata') or {}).get('at', '')})"
            if counter.count_text("\n".join([*shown, line])) <= budget:
                shown.append(line)
        answer = "\n".join(shown)
        method = f"mem0's search, {_MOST_FINDS} finds"
        yield _judged(method, budget, answer, needed, tokens=counter.count_text(answer), named=set())


def measure(
    paths: Sequence[Path] = (),
    *,
    budgets: Sequence[int] = BUDGETS,
    cache: Path | None = None,
    by_words: bool = False,
) -> Report:
    """Ask every question whose evidence is known, by each method.

    Raises:
        InvalidInputError: when a named file is no conversation.
    """
    counter = best_counter("gpt-4")
    found = None if by_words else resolve_embeddings("auto")
    embeddings = CachedEmbeddings(found, path=cache) if found is not None else None
    asked: list[Asked] = []
    threads = questions = 0
    for conversations in read_groups(paths).values():
        for conversation in conversations:
            said = {turn.id: turn.text for turn in conversation.turns}
            threads += len(conversation.sittings)
            with _filled(conversation, embeddings) as memory, tempfile.TemporaryDirectory() as folder:
                beside, mem0 = None, None
                if embeddings is not None:
                    dimensions = len(embeddings.embed_query("dimension"))
                    beside = _kept_by_langmem(conversation, embeddings, dimensions)
                    mem0 = _kept_by_mem0(conversation, embeddings, dimensions, folder)
                for question in conversation.questions:
                    needed = {one: said[one] for one in question.evidence}
                    if not needed or question.adversarial:
                        continue
                    questions += 1
                    asked += _of_memory(memory, question, needed, budgets)
                    if beside is not None:
                        asked += _of_langmem(beside, question, needed, budgets, counter)
                    if mem0 is not None:
                        asked += _of_mem0(mem0, question, needed, budgets, counter)
    return Report(
        benchmark="across_threads",
        about="evidence of other threads of the same user, within the budget of a new thread's request",
        settings={"counter": counter.fingerprint, "embeddings": embeddings is not None, "questions": questions}
        | {"threads": threads},
        grids=tuple(_grid(asked, budget) for budget in budgets),
        figures={"asked": [[one.method, one.budget, one.tokens, one.whole, one.named] for one in asked]},
        remarks=(
            "tokens are those of the request (section), or of the tool's answer alone (recall, langmem)",
            "in part: a passage of each message that answers, or a fact read from it, stands there",
        ),
    )


def _grid(asked: Sequence[Asked], budget: int) -> Grid:
    rows = []
    for method in dict.fromkeys(one.method for one in asked):
        mine = [one for one in asked if one.method == method and one.budget == budget]
        share = 100 / len(mine)
        rows.append(
            (
                method,
                round(share * sum(one.whole for one in mine)),
                round(share * sum(one.named for one in mine)),
                round(sum(one.tokens for one in mine) / len(mine)),
            )
        )
    columns = ("method", "all evidence whole, %", "at least in part, %", "tokens")
    return Grid(title=f"{budget:,} tokens", columns=columns, rows=tuple(rows))


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("paths", type=Path, nargs="*", help="conversations with annotated questions, or folders")
    parser.add_argument("--budgets", type=numbers, default=list(BUDGETS))
    parser.add_argument("--cache", type=Path, help="keep vectors in this file")
    parser.add_argument("--words", action="store_true", help="search by words alone; langmem and mem0 cannot")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.paths, budgets=asked.budgets, cache=asked.cache, by_words=asked.words)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
