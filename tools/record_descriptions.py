"""Records what upstream's `kubectl describe` prints of the objects in tests/kubectl/described.

    PYTHONPATH=tests python tools/record_descriptions.py KUBECTL FILE...

A file that is new needs only its objects, a line of JSON each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kubectl_static import dump, load, resource_of, serve


def main() -> None:
    kubectl, *names = sys.argv[1:]
    for name in names:
        entries = []
        for obj, _ in load(Path(name)):
            with tempfile.TemporaryDirectory() as home, serve([obj]) as server:
                command = [kubectl, f"--server={server}", "--namespace=ns", "describe"]
                done = subprocess.run(
                    [*command, resource_of(obj).fullname, obj["metadata"]["name"]],
                    env={**os.environ, "HOME": home, "KUBECONFIG": os.devnull, "TZ": "UTC"},
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=True,
                )
            entries.append((obj, done.stdout))
        Path(name).write_text(dump(entries))
        print(f"{name}: {len(entries)} objects")


if __name__ == "__main__":
    main()
