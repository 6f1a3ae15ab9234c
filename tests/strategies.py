"""Hypothesis strategies for messages and histories, from healthy to as broken as they occur in the wild."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
    ToolMessageChunk,
)

odd_characters = st.characters(categories=None)
"""Every code point, lone surrogates and NUL among them."""

odd_text = st.one_of(
    st.text(odd_characters, max_size=30),
    st.sampled_from(
        ["", " ", "\n\n", "\x00", "\ud800", "\ud83d\ude00", "<|endoftext|>", "```", "你好世界", "👩‍💻", "e\u0301"]
    ),
)
"""Anything that a program may hand over as text."""

words = st.lists(
    st.sampled_from(["the", "order", "4711", "ships", "to", "Bergen", "on", "Monday", "unless", "it", "rains"]),
    min_size=1,
    max_size=12,
)
plain_text = words.map(" ".join)
"""What people write: never blank."""

call_ids = st.sampled_from([f"call_{n}" for n in range(6)])
"""Few, so that they collide."""

odd_call_ids = st.one_of(call_ids, st.sampled_from(["", "functions.bash:0", "a|b", "x" * 80]))
tool_names = st.sampled_from(["search", "read_file", "book-flight"])
odd_tool_names = st.one_of(tool_names, st.sampled_from(["", "two words", "n" * 80]))

_scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), odd_text)
json_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(odd_text, inner, max_size=3)),
    max_leaves=8,
)
"""What JSON knows, and infinities."""

_zones = st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=45))])
rich_values = st.recursive(
    st.one_of(
        _scalars,
        st.binary(max_size=20),
        st.datetimes(timezones=_zones, allow_imaginary=False),
        st.dates(),
        st.timedeltas(),
        st.decimals(allow_nan=False),
        st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1)),
        st.builds(Document, page_content=plain_text, metadata=st.dictionaries(plain_text, _scalars, max_size=2)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.one_of(odd_text, st.integers(), st.just("$t")), inner, max_size=3),
        st.sets(st.one_of(st.integers(), plain_text), max_size=3),
        st.frozensets(st.integers(), max_size=3),
    ),
    max_leaves=6,
)
"""What tools put into artifacts."""

blocks: st.SearchStrategy[Any] = st.one_of(
    odd_text,
    st.builds(lambda text: {"type": "text", "text": text}, odd_text),
    st.sampled_from(
        [
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "QUJD" * 40}},
            {"type": "image", "base64": "QUJD", "mime_type": "image/webp"},
            {"type": "audio", "data": "QUJD", "mime_type": "audio/wav", "source_type": "base64"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"}},
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "thinking", "thinking": "cut o"},
            {"type": "redacted_thinking", "data": "eA=="},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "so"}]},
            {"type": "tool_use", "id": "call_1", "name": "search", "input": {"q": 1}},
            {"type": "tool_result", "tool_use_id": "call_2", "content": "found"},
            {"type": "refusal", "refusal": "I would rather not."},
            {"type": "web_search_result", "items": [1, 2]},
            {"type": "non_standard", "value": {"x": "y"}},
            {"type": "text"},
            {"no": "type"},
            {},
        ]
    ),
)
contents = st.one_of(odd_text, plain_text, st.lists(blocks, max_size=4))
ids = st.one_of(st.none(), st.uuids().map(str), plain_text)


def tool_calls(
    *, identities: st.SearchStrategy[Any] = call_ids, names: st.SearchStrategy[str] = tool_names
) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Lists of parsed calls, each id once in a list."""
    call = st.builds(
        lambda name, args, identity: {"name": name, "args": args, "id": identity, "type": "tool_call"},
        names,
        st.dictionaries(st.sampled_from(["q", "path", "n"]), json_values, max_size=3),
        identities,
    )
    return st.lists(call, max_size=3, unique_by=lambda made: made["id"])


_invalid_calls = st.lists(
    st.builds(
        lambda name, args, identity: {
            "name": name,
            "args": args,
            "id": identity,
            "error": "no JSON",
            "type": "invalid_tool_call",
        },
        odd_tool_names,
        st.one_of(st.none(), odd_text),
        st.one_of(st.none(), odd_call_ids),
    ),
    max_size=1,
)
_usage = st.one_of(
    st.none(),
    st.builds(
        lambda taken, given: {"input_tokens": taken, "output_tokens": given, "total_tokens": taken + given},
        st.integers(0, 9999),
        st.integers(0, 9999),
    ),
)
_names = st.one_of(st.none(), plain_text)
_kwargs = st.one_of(st.just({}), st.dictionaries(plain_text, rich_values, max_size=2))


def humans() -> st.SearchStrategy[BaseMessage]:
    """Human messages of any content."""
    return st.builds(
        lambda cls, content, name, identity, more: cls(content=content, name=name, id=identity, additional_kwargs=more),
        st.sampled_from([HumanMessage, HumanMessage, HumanMessageChunk]),
        contents,
        _names,
        ids,
        _kwargs,
    )


def assistants() -> st.SearchStrategy[BaseMessage]:
    """Assistant messages: text, reasoning, parsed and invalid calls, usage."""
    whole = st.builds(
        lambda content, calls, wrong, usage, identity, more: AIMessage(
            content=content,
            tool_calls=calls,
            invalid_tool_calls=wrong,
            usage_metadata=usage,
            id=identity,
            additional_kwargs=more,
            response_metadata={"model_name": "m"},
        ),
        contents,
        tool_calls(identities=st.one_of(st.none(), odd_call_ids), names=odd_tool_names),
        _invalid_calls,
        _usage,
        ids,
        st.one_of(_kwargs, st.just({"function_call": {"name": "f", "arguments": "{}"}})),
    )
    chunk = st.builds(
        lambda content, args, identity: AIMessageChunk(
            content=content,
            tool_call_chunks=[{"name": "search", "args": args, "id": identity, "index": 0, "type": "tool_call_chunk"}],
        ),
        contents,
        st.sampled_from(['{"q": 1}', '{"q": ', "", "x"]),
        call_ids,
    )
    return st.one_of(whole, whole, chunk)


def tool_results() -> st.SearchStrategy[BaseMessage]:
    """Tool results with any artifact, of calls that may never have been made."""
    return st.builds(
        lambda cls, content, call, artifact, status, name, identity: cls(
            content=content, tool_call_id=call, artifact=artifact, status=status, name=name, id=identity
        ),
        st.sampled_from([ToolMessage, ToolMessage, ToolMessageChunk]),
        st.one_of(odd_text, plain_text, st.lists(blocks.filter(lambda block: isinstance(block, dict)), max_size=3)),
        odd_call_ids,
        st.one_of(st.none(), rich_values),
        st.sampled_from(["success", "error"]),
        st.one_of(st.none(), tool_names),
        ids,
    )


def others() -> st.SearchStrategy[BaseMessage]:
    """System messages and the older roles."""
    return st.one_of(
        st.builds(lambda content, identity: SystemMessage(content=content, id=identity), contents, ids),
        st.builds(lambda content, name: FunctionMessage(content=content, name=name), odd_text, tool_names),
        st.builds(
            lambda content, role: ChatMessage(content=content, role=role),
            contents,
            st.sampled_from(["user", "assistant", "system", "critic", "tool"]),
        ),
    )


def messages() -> st.SearchStrategy[BaseMessage]:
    """Any single message."""
    return st.one_of(humans(), assistants(), tool_results(), others())


def broken_histories(max_size: int = 10) -> st.SearchStrategy[list[BaseMessage]]:
    """Lists of any messages in any order: orphans, duplicates, unanswered and reused calls, blank and odd text."""
    return st.lists(messages(), max_size=max_size)


@st.composite
def healthy_histories(draw: st.DrawFn, max_turns: int = 4) -> list[BaseMessage]:
    """Conversations as a provider takes them: unique ids, parallel calls, each answered directly behind its message."""
    history: list[BaseMessage] = [SystemMessage("Be kind.", id="s")] if draw(st.booleans()) else []
    number = 0
    for turn in range(draw(st.integers(1, max_turns))):
        history.append(HumanMessage(draw(plain_text), id=f"h{turn}"))
        for step in range(draw(st.integers(0, 2))):
            calls = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                calls.append({"name": draw(tool_names), "args": {"q": draw(plain_text)}, "id": f"call_{number}"})
            history.append(AIMessage(draw(st.one_of(st.just(""), plain_text)), tool_calls=calls, id=f"a{turn}.{step}"))
            history += [
                ToolMessage(draw(plain_text), tool_call_id=call["id"], id=f"r{call['id']}")
                for call in draw(st.permutations(calls))
            ]
        history.append(AIMessage(draw(plain_text), id=f"a{turn}"))
    return history


@st.composite
def interleaved_histories(draw: st.DrawFn) -> list[BaseMessage]:
    """Healthy ones whose results arrive late: other messages of the same history stand between call and result."""
    history = draw(healthy_histories())
    late = [message for message in history if isinstance(message, ToolMessage) and draw(st.booleans())]
    kept: list[BaseMessage] = [message for message in history if not any(message is result for result in late)]
    for result in late:
        call = next(
            at
            for at, message in enumerate(kept)
            if isinstance(message, AIMessage) and any(made["id"] == result.tool_call_id for made in message.tool_calls)
        )
        kept.insert(draw(st.integers(call + 1, len(kept))), result)
    return kept
