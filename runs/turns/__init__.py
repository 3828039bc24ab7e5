"""What one turn writes, and what is remembered between turns."""
