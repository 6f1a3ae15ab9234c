"""Which models an agent really calls: middlewares behind the memory's may put others in the place of the request's."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import var_child_runnable_config

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.runnables import RunnableConfig


class CalledModels(BaseCallbackHandler):
    """Notes the models of one request, in order."""

    run_inline = True

    def __init__(self) -> None:
        self._names: list[str | None] = []

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        metadata: dict[str, Any] | None = None,
        **about: Any,  # noqa: ANN401 - as the base class has it
    ) -> None:
        """A call begins."""
        del serialized, messages, about
        self._names.append((metadata or {}).get("ls_model_name"))

    def last(self, own: str | None) -> str | None:
        """The name of the model that was called last.

        Args:
            own: What the request's model calls itself: providers do not all report it under that name, so it is the
                answer while only one model was called.
        """
        return own if len(set(self._names)) < 2 else self._names[-1]  # noqa: PLR2004 - one model, or more


@contextlib.contextmanager
def watched(config: RunnableConfig, called: CalledModels) -> Iterator[None]:
    """Call a model inside with the caller's callbacks, and note which it was."""
    called._names.clear()  # noqa: SLF001 - one thing in two halves
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
