"""The append-only transcript: messages written, read and edited, and the events about them."""
