"""Vectors of passages in Chroma: embedded, on a server, or handed in."""
