"""The only way to remove: rows, summaries above them, vectors, bytes and threads, with a receipt."""
