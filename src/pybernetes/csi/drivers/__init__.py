"""CSI drivers of our own: `local` (folders and images on the node)."""
