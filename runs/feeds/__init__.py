"""A run's events as they come, for pages and for programs."""
