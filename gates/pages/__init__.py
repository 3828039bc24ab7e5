"""What the page of one question shows."""
