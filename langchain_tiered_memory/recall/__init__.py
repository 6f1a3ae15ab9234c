"""Finds what answers a question: the text index, the vector index, ranking and filling."""
