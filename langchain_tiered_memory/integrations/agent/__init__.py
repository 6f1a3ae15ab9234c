"""What the middleware of `create_agent` is made of."""
