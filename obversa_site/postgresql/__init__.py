"""Django's PostgreSQL, with a pool that hands out no connection that has ended."""
