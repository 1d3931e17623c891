"""A file's content: `blocks` (slices as objects), `cache` (blocks on the local disk), `writer` (writes that wait for
upload and commit), `reader` (reads and read-ahead), `collector` (objects of removed files, compaction)."""
