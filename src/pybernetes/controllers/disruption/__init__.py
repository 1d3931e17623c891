"""Tells how many pods of each PodDisruptionBudget may be evicted."""
