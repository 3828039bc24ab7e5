"""The run's own page: what it does now, and the questions somebody may answer (gates.md 14)."""
