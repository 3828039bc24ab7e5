"""Forms and checks made from a JSON Schema."""
