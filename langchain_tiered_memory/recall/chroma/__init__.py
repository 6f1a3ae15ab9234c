"""Vectors of passages in Chroma: embedded, on a server, or with a client from the caller."""
