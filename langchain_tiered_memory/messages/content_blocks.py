"""Reads the many dialects of message content into one list of parts.

LangChain's standard blocks, its older ones, and those of OpenAI, Anthropic, Google and Bedrock all occur in histories.
Rendering, counting and checking agree on what a message says because all of them read it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tiered_memory.text.readings import read_of
from langchain_tiered_memory.text.tagged_json import MAX_LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable


PartKind: TypeAlias = Literal["text", "image", "audio", "video", "file", "reasoning", "call", "compaction", "other"]

MEDIA: frozenset[str] = frozenset({"image", "audio", "video", "file"})
REASONING_TYPES = frozenset({"reasoning", "thinking", "redacted_thinking", "reasoning_content"})
CALL_TYPES = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"})
"""Blocks by which some providers repeat in the content what stands in `tool_calls`."""
OPAQUE = frozenset({"encrypted_content", "encrypted_index", "signature", "__gemini_function_call_thought_signatures__"})
"""Keys of an answer for what only its provider can read, and takes back unchanged."""

_MEDIA_TYPES: dict[str, PartKind] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "file",
}
_UNTYPED_MEDIA: dict[str, PartKind] = {"image": "image", "document": "file", "video": "video", "image_url": "image"}
_MIME_KINDS: dict[str, PartKind] = {"image": "image", "audio": "audio", "video": "video"}
_DATA_URL = re.compile(r"data:([^;,]{0,100})[^,]{0,100},")
_WHOLE_DATA_URL = re.compile(r"data:[\w.+/-]{1,100};base64,[A-Za-z0-9+/=_-]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_\r\n-]*")
_BLOB = re.compile(r"[A-Za-z0-9+/_=-]{200,}")
"""A long unbroken run such as base64, in whose place stands its length."""
_URL_CHARS = 200
_TOO_DEEP = "[nested too deeply to be shown]"
_KILOBYTE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of what a message says."""

    kind: PartKind
    text: str
    """The text itself; for media a line that describes it; for a call its name and arguments."""
    joined: bool = False
    """A text that continues the one before it (providers cut a sentence at each citation)."""
    low_detail: bool = False
    """An image that the provider is asked to look at coarsely."""
    sent: str = ""
    """A compaction's own summary, where it can be read."""
    encrypted_chars: int = 0
    """Of a compaction that only its provider can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call that a message makes."""

    id: str | None
    name: str
    args: dict[str, Any]
    raw: str | None = None
    """The arguments as they came, where they could not be parsed."""
    error: str | None = None


def parts_of(content: object, *, depth: int = 0) -> Iterator[Part]:
    """What `content` (a string, a list of strings and blocks, or a single block) says, in order. Never raises.

    `depth` counts the lists and blocks around it: what lies deeper than 100 is not read.
    """
    if isinstance(content, str):
        yield Part(kind="text", text=content)
    elif depth > MAX_LEVELS:
        yield Part(kind="other", text=_TOO_DEEP)
    elif isinstance(content, Mapping):
        yield from _block_parts(content, depth)
    elif isinstance(content, list | tuple):
        for item in content:
            yield from parts_of(item, depth=depth + 1)
    elif content is not None:
        yield Part(kind="text", text=str(content))


def kind_of(block: object) -> str | None:
    """The type of a content block; `None` where it has none. One that is no text becomes one, which no rule knows."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    return kind if kind is None else str(kind)


def compaction_in(block: object) -> Mapping[Any, Any] | None:
    """A provider's compaction block: its own summary of all that stands before it; `None` for any other block.

    Anthropic's has the summary in `content` (`None` where it failed: then the provider passes it over, and so does
    this), OpenAI's an `encrypted_content`. LangChain's standard content wraps either as `non_standard`.
    """
    if isinstance(block, Mapping) and block.get("type") == "non_standard":
        block = block.get("value")
    if not isinstance(block, Mapping) or block.get("type") != "compaction":
        return None
    has_summary = bool(block.get("content")) or ("content" not in block and bool(block.get("encrypted_content")))
    return block if has_summary else None


def bytes_in(block: Mapping[str, Any]) -> frozenset[str]:
    """Keys under which a content block, or its source, has bytes as base64: a file's, or sealed reasoning."""
    if kind_of(block) not in _MEDIA_TYPES.keys() | {"base64", "redacted_thinking"}:
        return frozenset()
    return frozenset(key for key in ("base64", "data") if _BASE64.fullmatch(str(block.get(key))))


def is_data_url(text: str) -> bool:
    """Whether a text is a URL that holds a file, and nothing besides."""
    return _WHOLE_DATA_URL.fullmatch(text) is not None


def compacts(message: BaseMessage, *, reader: str | None = None) -> bool:
    """Whether a provider's summary of all that was said before stands in `message`, and `reader` can read it.

    `reader` is the provider of the model that is sent it; `None` where that is not known.
    """
    content = message.content
    if not isinstance(message, AIMessage) or not isinstance(content, list):
        return False
    return any(_is_read(block, reader) for block in content)


def without_foreign_compactions(message: BaseMessage, *, reader: str | None) -> BaseMessage:
    """`message` with a line in the place of each compaction of another provider, which `reader` would refuse."""
    content = message.content
    if reader is None or not isinstance(message, AIMessage) or not isinstance(content, list):
        return message
    kept = [
        {"type": "text", "text": _compaction_part(found).text}
        if (found := compaction_in(block)) is not None and not _is_read(block, reader)
        else block
        for block in content
    ]
    return message if kept == content else message.model_copy(update={"content": kept})


def _is_read(block: object, reader: str | None) -> bool:
    """Whether a block is a compaction that this provider made, as far as both are known."""
    found = compaction_in(block)
    return found is not None and reader in (None, "anthropic" if "content" in found else "openai")


def requested_calls(message: BaseMessage) -> tuple[RequestedCall, ...]:
    """Every call that `message` makes: parsed ones, invalid ones, and those that stand in its content only."""
    if not isinstance(message, AIMessage):
        return ()
    calls = [
        RequestedCall(id=call.get("id"), name=call.get("name") or "", args=_arguments(call.get("args")))
        for call in message.tool_calls
    ]
    for wrong in message.invalid_tool_calls:
        args = wrong.get("args")
        raw = args if isinstance(args, str) else compact_json(args or {})
        calls.append(
            RequestedCall(
                id=wrong.get("id"),
                name=wrong.get("name") or "",
                args={},
                raw=raw,
                error=wrong.get("error") or "invalid",
            )
        )
    known = {call.id for call in calls}
    for block in message.content if isinstance(message.content, list) else ():
        call = _call_in(block)
        if call is not None and call.id is not None and call.id not in known:
            calls.append(call)
            known.add(call.id)
    return tuple(calls)


def call_id_in(block: object) -> str | None:
    """The id of the call that a content block repeats, or `None` where it is no call."""
    call = _call_in(block)
    return call.id if call is not None else None


def compact_json(value: object) -> str:
    """One line of JSON for people and counters; what JSON lacks is shown by its `str`. Never raises."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        return str(value)
    except RecursionError:
        return _TOO_DEEP


def texts_in(value: object, *, depth: int = 0, most: int = MAX_LEVELS) -> Iterator[str]:
    """The texts in a JSON value, in order; of what lies deeper than `most` lists and mappings, none."""
    if isinstance(value, str):
        yield value
    elif depth < most and isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from texts_in(one, depth=depth + 1, most=most)


def with_texts(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON value with each of its texts changed; keys stay."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: with_texts(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [with_texts(one, change) for one in value]
    return value


def _block_parts(block: Mapping[Any, Any], depth: int) -> Iterator[Part]:
    kind = kind_of(block)
    if kind in REASONING_TYPES:
        yield Part(kind="reasoning", text=_reasoning_text(block))
    elif kind in CALL_TYPES:
        call = _call_in(block)
        if call is not None:
            yield Part(kind="call", text=f"{call.name} {call.raw or compact_json(call.args)}")
    elif (compaction := compaction_in(block)) is not None:
        yield _compaction_part(compaction)
    elif isinstance(block.get("text"), str):  # `text`, `text-plain`, Bedrock's untyped blocks
        joined = bool(block.get("citations") or block.get("annotations"))
        yield Part(kind="text", text=block["text"], joined=joined)
    elif (words := _words_within(block)) is not None:
        yield from parts_of(words, depth=depth + 1)
    elif kind == "refusal" and isinstance(block.get("refusal"), str):
        yield Part(kind="text", text=block["refusal"])
    elif kind in _MEDIA_TYPES:
        yield _media_part(block, _MEDIA_TYPES[str(kind)])
    elif kind is None and (untyped := _UNTYPED_MEDIA.keys() & block.keys()):
        name = min(untyped)
        yield _media_part({**block, **_source(block[name])}, _UNTYPED_MEDIA[name])
    else:
        shown = block.get("value") if kind == "non_standard" else block
        text = _BLOB.sub(lambda blob: f"<{len(blob.group()):,} characters>", compact_json(shown))
        yield Part(kind="other", text=text)


def _compaction_part(block: Mapping[Any, Any]) -> Part:
    """A line such as `[compaction by the provider: 12 kB]`: what it summarises is in the transcript itself."""
    said = block.get("content")
    summary = said if isinstance(said, str) else "" if said is None else compact_json(said)
    hidden = block.get("encrypted_content")
    encrypted = len(hidden) if isinstance(hidden, str) else 0
    size = _size((summary or "").encode("utf-8", "replace")) if summary else _size(hidden)
    line = f"[compaction by the provider: {size}]"
    return Part(kind="compaction", text=line, sent=summary, encrypted_chars=encrypted)


def _reasoning_text(block: Mapping[Any, Any]) -> str:
    for key in ("reasoning", "thinking", "text"):
        if isinstance(block.get(key), str):
            return str(block[key])
    summary = block.get("summary")
    if isinstance(summary, list):
        return "\n".join(str(item.get("text", "")) for item in summary if isinstance(item, Mapping))
    return ""


def _call_in(block: object) -> RequestedCall | None:
    if not isinstance(block, Mapping) or kind_of(block) not in CALL_TYPES or not block.get("name"):
        return None
    identity = block.get("call_id") or block.get("id")
    given: object = next((block[key] for key in ("input", "args", "arguments") if block.get(key) is not None), {})
    raw = given if isinstance(given, str) else None
    return RequestedCall(
        id=str(identity) if identity else None,
        name=str(block["name"]),
        args=_arguments(given),
        raw=raw if raw and not _arguments(given) else None,
    )


def _arguments(value: object) -> dict[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _source(value: object) -> dict[Any, Any]:
    """The fields of a nested source; a bare string is taken for a URL."""
    if isinstance(value, Mapping):
        return dict(value)
    return {"url": value} if isinstance(value, str) else {}


def _media_part(block: Mapping[Any, Any], kind: PartKind) -> Part:
    """A line such as `[image: image/png, 12 kB]`; never the bytes."""
    fields: dict[Any, Any] = dict(block)
    for key in ("source", "image_url", "input_audio", "file", "video_url", "file_data"):
        fields |= _source(block.get(key))
    url = next((fields[key] for key in ("url", "file_url", "uri", "file_uri") if isinstance(fields.get(key), str)), "")
    data = next((fields[key] for key in ("base64", "data", "bytes", "file_data") if fields.get(key)), None)
    mime = next((fields[key] for key in ("mime_type", "media_type", "format") if isinstance(fields.get(key), str)), "")
    inline = _DATA_URL.match(url)
    if inline:
        mime, data, url = mime or inline.group(1), url[inline.end() :], ""
    named = next((fields[key] for key in ("filename", "name", "title", "file_id") if fields.get(key)), "")
    size = _size(data)
    shown = [str(item)[:_URL_CHARS] for item in (url, named, mime, size) if item]
    kind = _MIME_KINDS.get(str(mime).split("/")[0], kind) if kind == "file" else kind
    low = fields.get("detail") == "low"
    return Part(kind=kind, text=f"[{kind}: {', '.join(shown) or 'no details'}]", low_detail=low)


def _words_within(block: Mapping[Any, Any]) -> str | list[Any] | None:
    """What a result says, or a document whose words stand in it, as Anthropic and Bedrock take them; else `None`."""
    words: object = None
    if kind_of(block) in {"tool_result", "search_result"}:
        words = block.get("content")
    else:
        holder = block.get("document", block)
        source = holder.get("source") if isinstance(holder, Mapping) else None
        if isinstance(source, Mapping):
            words = source.get("data") if source.get("type") == "text" else source.get("content") or source.get("text")
    return words if isinstance(words, str | list) else None


def _size(data: object) -> str:
    if isinstance(data, bytes | bytearray):
        octets = len(data)
    elif isinstance(data, str):
        octets = len(data) * 3 // 4
    else:
        return ""
    return f"{octets / _KILOBYTE:,.0f} kB" if octets >= _KILOBYTE else f"{octets} bytes"


def schema_text(tool: object) -> str:
    """The JSON that a provider gets for `tool`, without spaces. Never raises.

    `tool` is one of LangChain's, a pydantic class, a function, a TypedDict, or a dict in a provider's own style.
    Anything else is shown by its `str`.
    """
    if isinstance(tool, Mapping):
        return _converted(dict(tool))
    key: Hashable
    if isinstance(tool, BaseTool):  # those of one schema are alike, whichever object it is
        schema = tool.args_schema
        key = (type(tool), tool.name, tool.description, compact_json(schema) if isinstance(schema, dict) else schema)
    else:
        key = tool if isinstance(tool, Hashable) else (type(tool), str(tool))
    return read_of(("tool", key), partial(_converted, tool), size=0)


def name_of_tool(tool: Any) -> str:  # noqa: ANN401 - a tool, a function, a class or a dict
    """Under which name a model may call it."""
    if isinstance(tool, dict):
        inner = tool.get("function")
        return str(inner.get("name") if isinstance(inner, dict) else tool.get("name") or tool.get("type"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


def _converted(tool: Any) -> str:  # noqa: ANN401 - whatever LangChain takes for a tool
    try:
        schema: Mapping[str, Any] = convert_to_openai_tool(tool)
    except Exception:  # noqa: BLE001 - builds the schema of somebody else's tool; what it cannot say is counted as text
        schema = tool if isinstance(tool, Mapping) else {"function": str(tool)}
    return compact_json(schema.get("function", schema))


def with_told_blocks(message: BaseMessage, *, fits: Callable[[BaseMessage], bool]) -> BaseMessage:
    """`message` with text in the place of as many of its blocks as it takes to fit, from the first one on.

    Media become a line; what a search result, a document or JSON says becomes a text, which can be cut. Calls of a
    provider's own tools and their results become texts together, for the provider refuses one without the other. A
    message that still does not fit is given back so.
    """
    content = message.content
    if not isinstance(content, list):
        return message
    blocks: list[str | dict[Any, Any]] = list(content)
    told = message
    for at, block in enumerate(content):
        if fits(told):
            break
        if not _can_be_told(block) or blocks[at] is not block:
            continue
        together = [place for place, one in enumerate(content) if _is_of_server_tool(one)]
        for place in together if at in together else [at]:
            blocks[place] = {"type": "text", "text": "\n".join(part.text for part in parts_of(content[place]))}
        told = message.model_copy(update={"content": list(blocks)})
    return told


def _can_be_told(block: object) -> bool:
    """Whether a text can stand for a block: it is none yet, and neither a call, nor reasoning, nor a compaction."""
    kept = CALL_TYPES | REASONING_TYPES | {"text", "text-plain"}
    is_kept = not isinstance(block, Mapping) or kind_of(block) in kept or compaction_in(block) is not None
    return not is_kept and any(part.kind != "text" or part.text for part in parts_of(block))


def _is_of_server_tool(block: object) -> bool:
    kind = kind_of(block) or ""
    return kind in {"server_tool_use", "server_tool_call", "mcp_tool_use"} or kind.endswith("tool_result")
