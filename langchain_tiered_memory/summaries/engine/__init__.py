"""The condensation engine: a chain of writers with breakers, bounds, hooks, validators and figures."""
