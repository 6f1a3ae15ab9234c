"""What is derived is checked and mended, and what is due is done: `verify`, `doctor`, the background worker."""
