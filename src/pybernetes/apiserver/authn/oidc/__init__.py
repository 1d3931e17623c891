"""Tokens that an OpenID Connect issuer has signed: whose keys (`provider`), which claims say who it is (`mapping`)."""
