"""What the runtime has written down is what it finds."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest
from damage import DAMAGES, damage

from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded.state import Records, Sandbox


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path / "sandboxes", Sandbox, cri.PodSandboxConfig)


def sandbox() -> Sandbox:
    return Sandbox("a", cri.PodSandboxConfig(hostname="h"), "embedded", 1)


def test_the_last_thing_that_was_said_of_a_record_counts(records: Records) -> None:
    record = sandbox()
    records.create(record)
    record.ready, record.ips = True, ["10.0.0.1"]
    records.save(record)
    assert records.load() == [record]


def test_half_a_line_is_none(records: Records, tmp_path: Path) -> None:
    record = sandbox()
    records.create(record)
    with open(tmp_path / "sandboxes/a/state.json", "a") as file:
        file.write('\n{"id": "a", "rea')
    assert records.load() == [record]


def test_a_record_that_could_not_be_made_or_removed_goes_with_the_next(records: Records, tmp_path: Path) -> None:
    records.create(sandbox())
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    next_file = os.dup(0)
    os.close(next_file)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_file, usual[1]))
    try:
        records.remove("a")
        with pytest.raises(OSError, match="Too many open files"):
            records.create(Sandbox("b", cri.PodSandboxConfig()))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert {each.name for each in (tmp_path / "sandboxes").iterdir()} == {"a", "b"}
    records.create(Sandbox("c", cri.PodSandboxConfig()))
    assert {each.name for each in (tmp_path / "sandboxes").iterdir()} == {"c"}


@pytest.mark.parametrize("missing", ["config", "state.json"])
def test_a_request_that_was_never_answered_is_forgotten(records: Records, tmp_path: Path, missing: str) -> None:
    records.create(sandbox())
    (tmp_path / "sandboxes/a" / missing).unlink()
    assert records.load() == []
    assert not (tmp_path / "sandboxes/a").exists()


def test_a_changed_request_replaces_the_one_before(records: Records) -> None:
    record = sandbox()
    records.create(record)
    record.config.hostname = "other"
    records.save_config(record)
    assert records.load() == [record]


def test_a_field_that_a_later_version_wrote_is_left_out(tmp_path: Path) -> None:
    records = Records(tmp_path, Sandbox, cri.PodSandboxConfig)
    records.create(Sandbox("a" * 64, cri.PodSandboxConfig(hostname="h"), ready=True))
    state = tmp_path / ("a" * 64) / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "later": [1]}))
    (found,) = records.load()
    assert (found.id, found.ready, found.config.hostname) == ("a" * 64, True, "h")


def test_a_state_that_a_full_disk_does_not_take_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = Records(tmp_path, Sandbox, cri.PodSandboxConfig)
    sandbox = Sandbox("a" * 64, cri.PodSandboxConfig())
    assert not records.try_save(sandbox)  # its folder is not there
    assert "is not written down" in caplog.text
    records.create(sandbox)
    assert records.try_save(sandbox)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("file", ["config", "state.json"])
def test_a_damaged_record_is_forgotten_and_the_others_are_not(
    records: Records, tmp_path: Path, file: str, how: str
) -> None:
    records.create(sandbox())
    other = Sandbox("b", cri.PodSandboxConfig(hostname="other"), "embedded", 1)
    records.create(other)
    damage(tmp_path / "sandboxes/a" / file, how)
    found = records.load()
    assert [each for each in found if each.id != "a"] == [other]
    if (file, how) not in {("config", "empty")}:  # which is a message without fields
        assert found == [other]
        assert not (tmp_path / "sandboxes/a").exists()


@pytest.mark.parametrize("values", [{"id": "b"}, {"id": 5}, {"id": "a", "ready": "yes"}, {"id": "a", "ips": 1}])
def test_a_record_with_values_of_another_kind_is_forgotten(records: Records, tmp_path: Path, values: object) -> None:
    records.create(sandbox())
    (tmp_path / "sandboxes/a/state.json").write_text(json.dumps(values))
    assert records.load() == []
