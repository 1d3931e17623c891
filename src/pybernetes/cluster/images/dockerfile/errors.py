"""What is wrong with a Dockerfile or one of its steps, with the place."""

from __future__ import annotations

from pybernetes.cluster.errors import ClusterError


class BuildError(ClusterError):
    """What is wrong; `placed` adds where."""


def placed(file: str, line: int, keyword: str, text: object) -> BuildError:
    """`Dockerfile:3: COPY: ...`."""
    return BuildError(f"{file}:{line}: {keyword}: {text}" if keyword else f"{file}:{line}: {text}")
