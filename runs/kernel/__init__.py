"""Facts and decisions: no Django, no I/O, no clock, no chance."""
