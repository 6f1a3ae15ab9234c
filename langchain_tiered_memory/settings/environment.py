"""Settings from the environment, for whoever deploys a program without changing it.

A setting is `TIERED_MEMORY_` and its name in capitals; that of a group stands behind the group and two underscores:

    TIERED_MEMORY_BUSY_SECONDS=60
    TIERED_MEMORY_CONTEXT__MAX_TOKENS=16000
    TIERED_MEMORY_CONDENSATION__STRATEGIES__FALLBACK=error
    TIERED_MEMORY_PRICES='{"gpt-5-mini": {"input_per_million": 0.25, "output_per_million": 2}}'

Lists and mappings are JSON. `TieredMemory.open` reads them where it is given no `settings`; settings that are passed
count alone. `TIERED_MEMORY_DOWNLOAD` and `TIERED_MEMORY_MINILM_DIR` are no settings: they say where MiniLM is.
"""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "TIERED_MEMORY_"
_INSIDE = "__"
"""Between a group and its setting."""


def settings_from_environment() -> Settings:
    """The defaults, with what the environment says in their place.

    Raises:
        SettingsError: for a variable that no setting is named by, or whose value cannot be used. It is named.
    """
    tops = {
        name: name.upper().removeprefix(PREFIX).partition(_INSIDE)[0].lower()
        for name in sorted(os.environ)
        if name.upper().startswith(PREFIX)
    }
    for name, top in tops.items():
        if _INSIDE in name.upper().removeprefix(PREFIX) and top not in Settings.model_fields:
            near = difflib.get_close_matches(top, Settings.model_fields, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Settings.model_fields)}"
            msg = f"{name}: there is no group of settings {top!r}: {meant}"
            raise SettingsError(msg)
    names = [name for name, top in tops.items() if top in Settings.model_fields]
    if not names:
        return Settings()
    try:
        return _read(names)
    except SettingsError:
        for name in names:
            _read([name])
        raise


def _read(names: Iterable[str]) -> Settings:
    from pydantic_settings import BaseSettings, EnvSettingsSource  # noqa: PLC0415 - only where a variable is set
    from pydantic_settings.exceptions import SettingsError as UnreadableError  # noqa: PLC0415 - as above

    class Variables(Settings, BaseSettings):  # type: ignore[misc]
        """Where the names and types of variables are read from; nothing is made of it."""

    source = EnvSettingsSource(Variables, env_prefix=PREFIX, env_nested_delimiter=_INSIDE, env_parse_none_str="none")
    meant = {name.lower() for name in names}
    source.env_vars = {name: value for name, value in source.env_vars.items() if name in meant}
    try:
        return Settings(**source())
    except UnreadableError as error:
        msg = f"{', '.join(names)}: {error.__cause__ or error}; lists and mappings are written as JSON"
        raise SettingsError(msg) from None
    except SettingsError as error:
        msg = f"{', '.join(names)}: {str(error).rpartition('Settings: ')[2]}"
        raise SettingsError(msg) from None
