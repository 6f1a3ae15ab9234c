"""How a memory is opened, its background thread, and a session's verbs by theme: parts of `memory` and `session`."""
