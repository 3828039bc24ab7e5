"""Stores of events and artifacts on this machine (graph.md sections 7 to 9)."""
