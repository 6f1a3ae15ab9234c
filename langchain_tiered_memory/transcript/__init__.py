"""The transcript: messages written, read, edited, and what is told of them. Append-only."""
