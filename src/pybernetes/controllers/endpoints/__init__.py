"""Keeps the Endpoints of a Service equal to its pods."""
