"""Bootstrap tokens: nodes that join trust `cluster-info` by them; they end in time."""
