"""Benchmarks of the memory, each against named peers in the same run. See `README.md`."""
