"""What the middleware, the nodes and the tools are made of; those are what users import."""
