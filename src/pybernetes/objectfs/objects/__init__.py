"""Object stores: `store` (the interface and how one is made), `folder`, `memory`, `s3`."""
