"""Servers that the API server asks: how to reach them, as whom, and how long to wait."""
