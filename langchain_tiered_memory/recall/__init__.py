"""What answers a question is found again: the text index, the vector index, ranking and filling."""
