"""Makes Jobs on a schedule."""
