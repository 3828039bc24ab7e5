"""The site: settings, addresses and the API that wire the apps together."""
