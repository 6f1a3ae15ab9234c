"""Parts of the nodes and the state of a graph."""
