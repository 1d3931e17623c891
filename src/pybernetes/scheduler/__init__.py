"""The scheduler. docs/scheduler.md is the guide."""

from __future__ import annotations

import os

# numpy's linear algebra is never used here; without this it keeps a thread and its memory for each processor.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
