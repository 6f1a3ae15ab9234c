"""How much a context may take, how that is divided, and when a view is condensed."""
