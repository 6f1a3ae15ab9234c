"""How values show themselves to people: as HTML in a notebook, as text in a terminal, as one short line in a list."""
