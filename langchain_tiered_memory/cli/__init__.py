"""The command line. Modules here load what they need when a command runs, so that `--help` answers at once."""
