"""What turns the crank: read, decide, append, hand out."""
