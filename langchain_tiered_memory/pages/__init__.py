"""A session as a page for people: written to one file, or served live on this machine only."""
