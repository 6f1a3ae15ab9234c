"""The condensation engine: a chain of writers with breakers, limits, hooks, validators and metrics."""
