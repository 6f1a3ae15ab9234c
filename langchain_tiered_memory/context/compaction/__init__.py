"""How a view is made smaller: condensing, masking, sliding, pruning, and recovery from an overflow."""
