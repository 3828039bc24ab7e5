"""What the monitor shows: one page, its style and its script."""
