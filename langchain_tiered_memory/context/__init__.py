"""The context of one model call, put together and accounted for."""
