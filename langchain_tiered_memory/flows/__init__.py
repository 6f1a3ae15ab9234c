"""The data's journeys, one per file, each written once and driven in both colours (see `asking`)."""
