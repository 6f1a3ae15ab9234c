"""Which models an agent really calls: middlewares behind the memory's may replace the request's."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a model, as it was made."""

    model: str | None
    messages: Sequence[BaseMessage]
    tools: Sequence[Any] | None
    """Schemas in the provider's own style; `None` where they are not known."""


class CalledModels(BaseCallbackHandler):
    """Notes the calls of models that are made for one request, in order."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        metadata: dict[str, Any] | None = None,
        **about: Any,  # noqa: ANN401 - as the base class has it
    ) -> None:
        """A call begins."""
        del serialized
        tools = (about.get("invocation_params") or {}).get("tools") or ()
        self.calls.append(
            Call(
                model=(metadata or {}).get("ls_model_name"),
                messages=messages[0] if messages else (),
                tools=tools if isinstance(tools, list | tuple) else None,
            )
        )

    def last(self, own: str | None) -> str | None:
        """The name of the model that was called last.

        Args:
            own: What the request's model calls itself: providers do not all report it under that name, so it is the
                answer while only one model was called.
        """
        names = [call.model for call in self.calls]
        return own if len(set(names)) < 2 else names[-1]  # noqa: PLR2004 - one model, or more


@contextlib.contextmanager
def watched(config: RunnableConfig, called: CalledModels) -> Iterator[None]:
    """Call a model inside with the caller's callbacks, and note which it was."""
    called.calls.clear()
    token = var_child_runnable_config.set(_with(config, called))
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _with(config: RunnableConfig, handler: BaseCallbackHandler) -> RunnableConfig:
    callbacks = config.get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        callbacks = callbacks.copy()
        callbacks.add_handler(handler, inherit=True)
        return cast("RunnableConfig", {**config, "callbacks": callbacks})
    return cast("RunnableConfig", {**config, "callbacks": [*(callbacks or ()), handler]})
