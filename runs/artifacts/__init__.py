"""Bytes that runs keep, and how they are handed out."""
