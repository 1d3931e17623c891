"""In-place resize: what a pod has been allocated, what it wants, and how it gets there without a restart."""
