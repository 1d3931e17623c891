"""Records what upstream's `kubectl kustomize` prints of the kustomizations in tests/kubectl/kustomizations.

    PYTHONPATH=tests python tools/record_kustomizations.py KUBECTL FILE...

A file that is new needs only the files of its kustomization.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kubectl_kustomizations import dump, load


def main() -> None:
    kubectl, *names = sys.argv[1:]
    for name in names:
        case = load(Path(name))
        with tempfile.TemporaryDirectory() as folder:
            root = os.path.realpath(folder)
            case.lay_out(Path(root))
            done = subprocess.run([kubectl, "kustomize", root], capture_output=True, text=True, timeout=60, check=False)
        case.stdout, case.stderr = done.stdout.replace(root, "$DIR"), done.stderr.replace(root, "$DIR")
        Path(name).write_text(dump(case))
        print(f"{name}: exit code {done.returncode}")


if __name__ == "__main__":
    main()
