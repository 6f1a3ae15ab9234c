"""Tool schemas as the text that counts: converted once per tool, for conversion costs far more than counting."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_tiered_memory.messages.content_blocks import compact_json


def schema_text(tool: object) -> str:
    """The JSON that a provider gets for `tool`, without spaces. Never raises.

    Args:
        tool: A LangChain tool, a pydantic class, a function, a TypedDict, or a dict in OpenAI's, Anthropic's or a
            provider's own style. Anything else is shown by its `str`.
    """
    if isinstance(tool, Mapping):
        return _converted(dict(tool))
    return _converted_once(_Keyed(key=_key(tool), tool=tool))


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A tool that is equal to another with the same schema, whichever object it is."""

    key: Hashable
    tool: Any = field(compare=False, hash=False)


def _key(tool: object) -> Hashable:
    if isinstance(tool, BaseTool):
        schema = tool.args_schema
        fixed = compact_json(schema) if isinstance(schema, dict) else schema
        return (type(tool), tool.name, tool.description, fixed)
    return tool if isinstance(tool, Hashable) else (type(tool), str(tool))


@lru_cache(maxsize=512)
def _converted_once(keyed: _Keyed) -> str:
    return _converted(keyed.tool)


def _converted(tool: Any) -> str:  # noqa: ANN401 - whatever LangChain takes for a tool
    try:
        schema: Mapping[str, Any] = convert_to_openai_tool(tool)
    except Exception:  # noqa: BLE001 - builds the schema of somebody else's tool; what it cannot say is counted as text
        schema = tool if isinstance(tool, Mapping) else {"function": str(tool)}
    return compact_json(schema.get("function", schema))
