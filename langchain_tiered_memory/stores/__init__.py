"""The only rooms that do I/O: SQL through SQLAlchemy Core, vectors through Chroma. One method, one transaction."""
