"""The one way to remove: rows, summaries above them, vectors, bytes, threads; with a receipt."""
