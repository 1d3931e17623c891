"""--chmod, by the rules of chmod(1)."""

from __future__ import annotations

import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.cluster.images.dockerfile import modes

FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        ("", FILE | 0o640, 0o640),
        ("755", FILE | 0o640, 0o755),
        ("0", FILE | 0o640, 0),
        ("4755", FILE | 0o640, 0o4755),
        ("+x", FILE | 0o644, 0o755),
        ("u+x", FILE | 0o644, 0o744),
        ("a-w", FILE | 0o666, 0o444),
        ("go=", FILE | 0o777, 0o700),
        ("g=u", FILE | 0o750, 0o770),
        ("u=rwX,go=rX", FILE | 0o600, 0o644),
        ("u=rwX,go=rX", FILE | 0o700, 0o755),
        ("u=rwX,go=rX", FOLDER | 0o700, 0o755),
        ("u+s,g+s,+t", FILE | 0o755, 0o7755),
        ("u=rw,g+w-x", FILE | 0o755, 0o665),
    ],
)
def test_modes_are_changed(text: str, before: int, after: int) -> None:
    assert oct(modes.changed(modes.check(text), before)) == oct(after)


@pytest.mark.parametrize("text", ["77777", "9", "x", "u", "u+z", "+x,", ",", "u=rwx go=r", "-1"])
def test_an_invalid_mode_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="is no mode"):
        modes.check(text)


@given(st.text(alphabet="ugoa+-=rwxXst,07", max_size=12), st.integers(0, 0o7777))
def test_any_text_is_a_mode_or_an_error(text: str, before: int) -> None:
    try:
        modes.check(text)
    except ValueError:
        return
    assert 0 <= modes.changed(text, FILE | before) <= 0o7777
