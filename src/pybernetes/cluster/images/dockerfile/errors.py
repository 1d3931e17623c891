"""Errors in a Dockerfile or one of its steps, with the place."""

from __future__ import annotations

from pybernetes.cluster.errors import ClusterError


class BuildError(ClusterError):
    """An error in a Dockerfile; `placed` adds the place."""


def placed(file: str, line: int, keyword: str, text: object) -> BuildError:
    """`Dockerfile:3: COPY: ...`."""
    return BuildError(f"{file}:{line}: {keyword}: {text}" if keyword else f"{file}:{line}: {text}")
