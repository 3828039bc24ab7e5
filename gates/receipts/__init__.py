"""Receipts of answers: what was decided, by whom, and what it led to."""
