"""Questions that go to a service: a signed POST, answered in its reply or later over the API."""
