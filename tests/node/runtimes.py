"""The container runtimes that tests of nodes run on."""

from __future__ import annotations

import pytest

RUNTIMES = ("containerd", "embedded")


def only(name: str) -> pytest.MarkDecorator:
    """Marks a test, or a module's `pytestmark`, that is about one runtime alone."""
    return pytest.mark.parametrize("runtime_name", [name], indirect=True)
