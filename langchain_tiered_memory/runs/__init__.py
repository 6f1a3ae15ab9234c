"""An agent's run: tasks, phases, zones, plans of views, checkpoints and their restore."""
