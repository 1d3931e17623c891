"""Records what upstream's kubectl prints for the command lines of transcripts, against an API server of ours.

    PYTHONPATH=tests python tools/record_kubectl_transcripts.py KUBECTL FILE...

A file that is new needs only its lines that begin with `$`. The form is described in tests/kubectl_transcripts.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from kubectl_transcripts import ENVIRONMENT, MANIFESTS, config_for, dump, load

import tools


def main() -> None:
    kubectl, *names = sys.argv[1:]
    for name in names:
        path = Path(name)
        with tempfile.TemporaryDirectory() as folder, tools.api_server(Path(folder)) as server:
            namespace = f"t-{path.stem}"
            config = Path(folder) / "config"
            config_for(server.kubeconfig, namespace, config)
            environment = {**os.environ, "KUBECONFIG": str(config), "HOME": folder, "TMP": folder, **ENVIRONMENT}
            subprocess.run(
                [kubectl, "create", "namespace", namespace], env=environment, check=True, capture_output=True
            )
            entries = load(path)
            for entry in entries:
                command = kubectl + entry.command.removeprefix("kubectl")
                done = subprocess.run(
                    ["bash", "-c", command], env=environment, cwd=MANIFESTS, capture_output=True, text=True, timeout=60
                )
                entry.stdout, entry.stderr = (
                    text.replace(folder, "$TMP").replace(str(MANIFESTS), "$HERE") for text in (done.stdout, done.stderr)
                )
                entry.code = done.returncode
            path.write_text(dump(entries))
        print(f"{path}: {len(entries)} commands")


if __name__ == "__main__":
    main()
