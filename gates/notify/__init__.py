"""Telling people and other systems that something waits for them, or is over."""
