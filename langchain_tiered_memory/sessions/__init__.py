"""Parts of `memory` and `session`: opening a memory, and a session's verbs by theme."""
