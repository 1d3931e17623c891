"""JSON is read without the module `json`, and what is no JSON is a ValueError whatever the scanner makes of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize("text", ["{a:1}", '{"a" 1}', '{"a":1,}', "[1,", '"a', "{", "nul", ""])
@pytest.mark.parametrize("function", ["loads", "stream"])
def test_bad_json_is_a_value_error(function: str, text: str) -> None:
    if function == "stream" and not text:
        return  # no document at all
    program = (
        f"import sys; sys.path.insert(0, {str(SOURCE)!r})\n"
        "from pybernetes.kubectl import data\n"
        "try:\n"
        f"    data.{function}({text.encode()!r})\n"
        "except ValueError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.strip()
