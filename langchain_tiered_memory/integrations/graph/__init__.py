"""What the nodes and the state of a graph are made of."""
