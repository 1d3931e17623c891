"""Metadata: `engine` (the key-value interface) with one module an engine, `records` (keys and values), `inodes`
(files and directories), `slices` (a file's content), `locks`, `sessions`, `attributes` (extended ones)."""
