"""Engines: what does the work of one step."""
