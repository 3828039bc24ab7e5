"""What a record says, in lines, as a summary and as a page; pure functions of its events."""
