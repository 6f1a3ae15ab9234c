"""How values show themselves to people: in a notebook as HTML, in a terminal as text, in a list as one short line."""
