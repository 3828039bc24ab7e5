"""Reviews with a form and a change of their own."""
