"""A run as a file, and back: exports, imports, and the check that a record is whole."""
