"""A POSIX file system whose metadata is in a database and whose data is in an object store.

- `fuse/`: the kernel's FUSE protocol on `/dev/fuse`, without libfuse
- `meta/`: inodes, directories, slices, locks, sessions, on a small transactional key-value interface
- `objects/`: object stores (folder, memory, S3)
- `data/`: a file's content: slices that are written, uploaded, committed; blocks that are read and cached
- `volume.py`: the file system that `fuse/` calls: metadata and data together
- `commands/`: `pyb objectfs format | mount | umount | ...`

A file is chunks of 64 MiB, a chunk is a list of slices (one continuous write each, the newest wins), and a slice is
stored as blocks of 4 MiB. Objects are never changed after they are written, so that readers need no lock.
"""
