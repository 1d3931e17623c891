"""Files that change all at once."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.kubelet.volumes.atomic_writer import File, write


def _write(folder: Path, files: dict[str, bytes], mode: int = 0o644) -> bool:
    return write(folder, {path: File(data, mode) for path, data in files.items()}, lambda: None)


def _shown(folder: Path) -> dict[str, bytes]:
    """What a container sees, without our own names."""
    found = {}
    for path, _, names in os.walk(folder, followlinks=True):
        for name in names:
            inside = os.path.relpath(os.path.join(path, name), folder)
            if not inside.startswith(".."):
                found[inside] = (folder / inside).read_bytes()
    return found


def test_files_are_links_into_data_which_is_a_link_to_a_stamped_folder(tmp_path: Path) -> None:
    assert _write(tmp_path, {"a": b"1", "d/e/f": b"2"}, 0o400)
    assert os.readlink(tmp_path / "a") == "..data/a"
    assert os.readlink(tmp_path / "d") == "..data/d"
    stamped = os.readlink(tmp_path / "..data")
    assert stamped.startswith("..20")
    assert _shown(tmp_path) == {"a": b"1", "d/e/f": b"2"}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o755


def test_nothing_is_touched_when_nothing_has_changed(tmp_path: Path) -> None:
    _write(tmp_path, {"a": b"1"})
    before = os.readlink(tmp_path / "..data")
    assert not _write(tmp_path, {"a": b"1"})
    assert os.readlink(tmp_path / "..data") == before


def test_a_change_shows_the_new_files_and_takes_the_old_ones_away(tmp_path: Path) -> None:
    _write(tmp_path, {"a": b"1", "b": b"2", "d/e": b"3"})
    old = os.readlink(tmp_path / "..data")
    assert _write(tmp_path, {"a": b"9", "d/f": b"4", "g": b"5"})
    assert _shown(tmp_path) == {"a": b"9", "d/f": b"4", "g": b"5"}
    assert not (tmp_path / old).exists()
    assert sorted(os.listdir(tmp_path)) == sorted([os.readlink(tmp_path / "..data"), "..data", "a", "d", "g"])


def test_a_link_that_is_missing_is_made_again(tmp_path: Path) -> None:
    _write(tmp_path, {"a": b"1"})
    (tmp_path / "a").unlink()
    _write(tmp_path, {"a": b"1"})
    assert _shown(tmp_path) == {"a": b"1"}


def test_a_failure_before_the_change_leaves_the_old_files(tmp_path: Path) -> None:
    _write(tmp_path, {"a": b"1"})

    def refuse() -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        write(tmp_path, {"a": File(b"2", 0o644)}, refuse)
    assert _shown(tmp_path) == {"a": b"1"}
    assert sorted(os.listdir(tmp_path)) == sorted([os.readlink(tmp_path / "..data"), "..data", "a"])


def test_an_attempt_that_was_cut_off_does_not_stand_in_the_way(tmp_path: Path) -> None:
    with mock.patch.object(Path, "rename", side_effect=OSError("power off")), pytest.raises(OSError, match="power off"):
        _write(tmp_path, {"a": b"1"})
    assert os.path.lexists(tmp_path / "..data_tmp")
    _write(tmp_path, {"a": b"1"})
    assert _shown(tmp_path) == {"a": b"1"}


def test_a_folder_for_another_volume_stays(tmp_path: Path) -> None:
    (tmp_path / "nested").mkdir()
    _write(tmp_path, {"a": b"1"})
    _write(tmp_path, {"b": b"1"})
    assert (tmp_path / "nested").is_dir()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", 'must not be empty: ""'),
        ("/a", "must be relative path: /a"),
        ("a/../b", "must not contain '..': a/../b"),
        ("..a", "must not start with '..': ..a"),
        ("..a/b", "must not start with '..': ..a/b"),
        ("x" * 256, "filenames must be less than or equal to 255 characters"),
        ("x/" * 2049, "must be less than or equal to 4096 characters"),
    ],
)
def test_paths_that_are_refused(tmp_path: Path, path: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        _write(tmp_path, {path: b""})
    assert str(caught.value) == f"invalid path: {why}"


_NAMES = st.text("ab.", min_size=1, max_size=3).filter(lambda text: text.strip(".") and not text.startswith(".."))
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)


def _possible(files: dict[str, bytes]) -> bool:
    return not any(other.startswith(path + "/") for path in files for other in files)


@given(st.lists(st.dictionaries(_PATHS, st.binary(max_size=3), max_size=5).filter(_possible), max_size=5))
def test_after_any_series_of_writes_exactly_the_last_files_are_seen(
    tmp_path_factory: pytest.TempPathFactory, series: list[dict[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("v")
    for files in series:
        _write(folder, files)
        assert _shown(folder) == files
    stamped = [name for name in os.listdir(folder) if name.startswith("..2")]
    assert len(stamped) == bool(series)
