"""What a question rests on: files, masked values, and what changed since the last one."""
