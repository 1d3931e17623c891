"""Which Kubernetes this is, on the wire."""

from __future__ import annotations

GIT_VERSION = "v1.36.0+pybernetes"
