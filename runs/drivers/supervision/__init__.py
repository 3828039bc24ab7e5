"""Runs of this machine that others may look at from outside (runs.md section 19.1)."""
