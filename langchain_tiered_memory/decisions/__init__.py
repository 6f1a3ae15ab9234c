"""Pure judgement: frozen values in, frozen values out; no clock, store, model or randomness."""
