"""Parts of the middleware for `create_agent`."""
