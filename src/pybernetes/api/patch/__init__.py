"""The three kinds of patches: `json_patch` (RFC 6902), `merge_patch` (RFC 7386), `strategic_merge`."""
