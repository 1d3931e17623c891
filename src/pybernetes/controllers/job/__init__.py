"""Runs pods until enough of them have succeeded."""
