"""`--windows-line-endings`: the editor sees CRLF, the server does not."""

from __future__ import annotations

import pytest

from pybernetes.kubectl.commands.edit import edit_text


@pytest.mark.parametrize(("windows", "seen"), [(True, b"a\r\nb\r\n"), (False, b"a\nb\n")])
def test_the_editor_sees_the_line_ends_that_were_asked_for(
    windows: bool, seen: bytes, tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = f"{tmp_path}/copied"
    monkeypatch.setenv("KUBE_EDITOR", f"sh -c 'cp \"$0\" {copied}'")
    assert edit_text("a\nb\n", ".yaml", windows) == "a\nb\n"
    with open(copied, "rb") as file:
        assert file.read() == seen
