"""Deletes what belongs to nobody any more."""
