"""What the pages of runs show, made from the record and its rows."""
