"""Who acts, who is asked, and what they may do now."""
