"""What an author writes: jobs and the graphs that hold them."""
