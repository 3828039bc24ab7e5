"""One attempt at one step, from its lease to its end: what workers do."""
