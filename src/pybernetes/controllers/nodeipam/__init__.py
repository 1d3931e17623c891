"""Gives each node a range of pod addresses."""
