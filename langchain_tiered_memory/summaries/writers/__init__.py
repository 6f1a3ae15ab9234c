"""Who writes a summary: a chat model, or sentences chosen from the sources."""
