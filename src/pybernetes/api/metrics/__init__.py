"""metrics.k8s.io: what nodes and pods use now. With upstream another server's, behind an APIService."""
