"""What a context points to in the place of a file that was read again stands in it, word for word, above."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.section_report import POINTED
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.token_counters import EstimatingCounter
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session

Step = tuple[str, int, int]
"""What is done with which file, and which version it has from then on or what is wrong."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["read", "read", "read", "cat", "part", "write", "fails", "says"]),
        st.integers(0, 1),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=26,
)


def text_of_file(file: int, version: int) -> str:
    return "\n".join(f"{line:6d}\tvalue_{file}_{line} = {version * 1000 + line}" for line in range(1, 31))


def played(steps: Sequence[Step]) -> list[BaseMessage]:
    """A run of an agent that has a tool for reading, one for writing, and a shell."""
    versions = [0, 0]
    messages: list[BaseMessage] = [HumanMessage("Tidy up the two files.", id="goal")]
    for number, (kind, file, chosen) in enumerate(steps):
        path, call = f"/srv/project/module_{file}.py", f"call_{number}"
        if kind == "says":
            messages += [AIMessage(f"So far {number}. {'That is done. ' * 20}"), HumanMessage(f"Go on, {number}.")]
            continue
        name, args = {
            "read": ("read_file", {"file_path": path}),
            "cat": ("bash", {"command": f"cat {path}"}),
            "part": ("read_file", {"file_path": path, "offset": 5, "limit": 10 + chosen}),
            "write": ("write_file", {"file_path": path, "content": text_of_file(file, chosen)}),
            "fails": ("read_file", {"file_path": path}),
        }[kind]
        whole = text_of_file(file, versions[file])
        result = {"part": "\n".join(whole.split("\n")[4 : 14 + chosen]), "write": "ok", "fails": f"Error: {whole}"}
        if kind == "write":
            versions[file] = chosen
        messages += [
            AIMessage("", tool_calls=[{"name": name, "args": args, "id": call}], id=f"asks_{number}"),
            ToolMessage(
                result.get(kind, whole),
                tool_call_id=call,
                name=name,
                id=f"result_{number}",
                status="error" if kind == "fails" else "success",
            ),
        ]
    return messages


def check(session: Session, steps: Sequence[Step], stored: dict[str, BaseMessage], *, max_tokens: int) -> int:
    """Of one context that each pointer leads to its text; how many there are."""
    context = session.context(max_tokens=max_tokens)
    recent = context.section("recent")
    pointed = {one.what: one for one in recent.left_out if one.reason.endswith(POINTED)} if recent is not None else {}
    there = [message.id for message in context.messages if message.id in pointed]
    assert sorted(there) == sorted(pointed)
    for at, message in enumerate(context.messages):
        if message.id in pointed:
            whole = str(stored[message.id].content)
            assert whole not in str(message.content)
            assert any(whole in str(one.content) for one in context.messages[:at])
            assert steps[int(message.id.split("_")[1])][0] in ("read", "cat", "part")
        elif message.id in stored and isinstance(message, ToolMessage) and "[..." not in str(message.content):
            assert message.content == stored[message.id].content
    return len(pointed)


@pytest.mark.slow
@hypothesis_settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from([1000, 2000, 4000, 16_000]), st.booleans())
def test_each_pointer_leads_to_its_text(steps: list[Step], max_tokens: int, whole: bool) -> None:  # noqa: FBT001
    settings = Settings(tree=TreeSettings(background=False))
    messages = played(steps)
    stored = {str(one.id): one for one in messages if one.id}
    with TieredMemory.open(None, embeddings=None, settings=settings, token_counter=EstimatingCounter()) as memory:
        session = memory.session("s")
        if whole:
            session.add_messages(messages)
            check(session, steps, stored, max_tokens=max_tokens)
            return
        for message in messages:
            session.add_messages([message], wait=True)
            if not isinstance(message, AIMessage):
                check(session, steps, stored, max_tokens=max_tokens)
        kept = {str(one.id): one.content for one in session.messages() if one.id}
        assert all(kept[key] == one.content for key, one in stored.items())


def test_files_read_again_while_they_are_in_view_are_all_pointed_to() -> None:
    steps: list[Step] = [("read", 0, 0), ("cat", 1, 0), ("says", 0, 0), ("cat", 0, 0), ("read", 1, 0), ("read", 0, 0)]
    messages = played([*steps, *steps])
    stored = {str(one.id): one for one in messages if one.id}
    for background in (True, False):
        settings = Settings(tree=TreeSettings(background=background))
        with TieredMemory.open(None, embeddings=None, settings=settings) as memory:
            session = memory.session("s")
            session.add_messages(messages, wait=True)
            assert check(session, [*steps, *steps], stored, max_tokens=16_000) == 8
