"""Who may write a summary: plugins by name and priority. The built-in writers are plugins among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.driver import Flow, run
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.extensions import CondensationContext, CondensationPlugin
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from langchain_tiered_memory.summaries.writers.jobs import BatchCondenser, Condensed, CondenseJob, Condenser

MODEL_PRIORITY = 100
"""Of the first condensing model; each further one of a chain has one less."""
EXTRACTIVE_PRIORITY = 0


class CondenserPlugin:
    """A built-in writer as a plugin. The engine drives its flow, sync or async as whoever asks.

    One that uses a model is tried again before rules write in its stead.
    """

    def __init__(self, condenser: Condenser, *, priority: int, uses_model: bool) -> None:
        self.name = condenser.name
        self.priority = priority
        self.uses_model = uses_model
        self._condenser = condenser

    def should_activate(self, context: CondensationContext) -> bool:
        """True for any job."""
        del context
        return True

    def condense(self, job: CondenseJob) -> Condensed:
        """The summary, in this thread."""
        return run(self.flow(job))

    def flow(self, job: CondenseJob) -> Flow[Condensed]:
        """The summary, as a flow."""
        return self._condenser.condense(job)

    @property
    def together(self) -> BatchCondenser | None:
        """The writer, where it can write several summaries in one call."""
        writer: Any = self._condenser
        return writer if self.uses_model and hasattr(writer, "condense_together") else None


def is_built_in_rules(plugin: CondensationPlugin) -> bool:
    """Whether it is a built-in writer that asks no model: what stands in for the others."""
    return isinstance(plugin, CondenserPlugin) and not plugin.uses_model


class PluginRegistry:
    """Plugins, the highest priority first; among equals, the one that was there first. Safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._plugins: tuple[CondensationPlugin, ...] = ()

    @property
    def plugins(self) -> tuple[CondensationPlugin, ...]:
        """All of them, in their order."""
        return self._plugins

    def register(self, plugin: CondensationPlugin) -> None:
        """Add a plugin."""
        given: object = plugin
        if not isinstance(given, CondensationPlugin):
            msg = f"a plugin has name, priority, should_activate and condense; {type(given).__name__} has not"
            raise SettingsError(msg)
        if not isinstance(plugin.name, str) or not plugin.name or not isinstance(plugin.priority, int | float):
            msg = f"a plugin's name is a text and its priority a number, not {plugin.name!r} and {plugin.priority!r}"
            raise SettingsError(msg)
        with self._lock:
            if any(one.name == plugin.name for one in self._plugins):
                msg = f"there is a plugin {plugin.name!r} already: unregister it first, or choose another name"
                raise SettingsError(msg)
            self._plugins = tuple(sorted((*self._plugins, plugin), key=lambda one: -one.priority))

    def unregister(self, name: str) -> bool:
        """Take a plugin out. Returns whether there was one of that name."""
        with self._lock:
            left = tuple(one for one in self._plugins if one.name != name)
            found = len(left) < len(self._plugins)
            self._plugins = left
            return found
