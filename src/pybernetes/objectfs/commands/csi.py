"""`pyb objectfs csi`: the CSI driver, in `pybernetes.objectfs.csi.command`."""

from __future__ import annotations

from pybernetes.objectfs.csi.command import add_flags, run

__all__ = ["add_flags", "run"]
