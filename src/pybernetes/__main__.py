"""`python -m pybernetes COMMAND`: the same as `pyb COMMAND`."""

from __future__ import annotations

import sys

from pybernetes.cluster.cli import main

sys.exit(main())
