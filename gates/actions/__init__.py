"""Approvals of tools and actions, and the grants that stand for them."""
