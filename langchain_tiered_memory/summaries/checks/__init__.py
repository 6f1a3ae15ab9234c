"""Whether a summary may stand for its sources: size, soundness, unsourced figures, trust labels."""
