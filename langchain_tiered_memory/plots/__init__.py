"""Pictures of what public verbs give: `plots.window_use(session.window_use())` and so on, each a matplotlib `Figure`.

They need the extra `plots`. Nothing of pyplot is used: no figure has to be closed, and a notebook shows the one that a
cell ends with (after `%matplotlib inline`). Colour-blind people tell the colours apart; `dark=True` is for dark pages.
"""

from langchain_tiered_memory.plots.records import costs, in_view_against_billed, recall, tree
from langchain_tiered_memory.plots.windows import composition, sent, window_use

__all__ = ["composition", "costs", "in_view_against_billed", "recall", "sent", "tree", "window_use"]
