"""Sets the number of replicas by metrics."""
