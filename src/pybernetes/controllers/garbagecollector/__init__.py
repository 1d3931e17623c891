"""Deletes objects whose owners are gone."""
