"""The command line. Its modules load what they need only when a command runs, so `--help` is fast."""
