"""Workflows that ship with the product."""
