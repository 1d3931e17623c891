"""Makes ResourceClaims for pods, and takes reservations back."""
