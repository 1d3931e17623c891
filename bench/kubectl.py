"""`./pyb bench kubectl`: wall time and memory of our kubectl, with a warm and a cold discovery cache.

A control plane without nodes is started with `pyb up`; pods are made over the API. `--kubectl PATH` names another
kubectl (upstream's) whose figures are shown beside ours. Times are medians of `--runs` runs, from fork to exit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _cluster import cluster
from _load import ROOT, Report

MANY = 5000
SMALL = 30


def main(argv: list[str]) -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(prog="pyb bench kubectl", description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--pods", type=int, default=MANY, help="of all namespaces (default: %(default)s)")
    parser.add_argument("--kubectl", help="another kubectl to compare with")
    options = parser.parse_args(argv)
    report = Report("kubectl")
    with tempfile.TemporaryDirectory(prefix="bench-kubectl-") as name:
        folder = Path(name)
        with cluster(folder, "bench-kubectl", ["--nodes", "0"], report, None) as running:
            environment = {**os.environ, "KUBECONFIG": running.kubeconfig, "HOME": str(folder)}
            programs = {"": str(ROOT / "kubectl")}
            if options.kubectl:
                programs[" (other)"] = options.kubectl
            ours = programs[""]
            subprocess.run(
                [ours, "create", "namespace", "small"], env=environment, check=True, stdout=subprocess.DEVNULL
            )
            _pods(ours, environment, "small", SMALL)
            _pods(ours, environment, "default", options.pods - SMALL)
            objects = folder / "objects.yaml"
            objects.write_text("---\n".join(_configmap(index) for index in range(20)))
            rows = {
                f"get pods ({SMALL})": ["get", "pods", "-n", "small"],
                f"get pods -A ({options.pods})": ["get", "pods", "-A"],
                "apply -f (20 objects)": ["apply", "-f", str(objects)],
                "version --client": ["version", "--client"],
                "completion bash": ["completion", "bash"],
            }
            for title, command in rows.items():
                for suffix, program in programs.items():
                    for cold in (False, True) if command[0] in ("get", "apply") and "-A" not in command else (False,):
                        took = _median([program, *command], environment, options.runs, folder if cold else None)
                        report.row(f"{title}{', cold' if cold else ''}{suffix}", took * 1000, "ms")
            for suffix, program in programs.items():
                report.row(
                    f"memory of get pods ({SMALL}){suffix}",
                    _memory([program, *rows[f"get pods ({SMALL})"]], environment),
                    "MiB",
                )
    report.save()
    return 0


def _configmap(index: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bench-{index}\ndata:\n  a: b\n"


def _pods(program: str, environment: dict[str, str], namespace: str, count: int) -> None:
    """Unscheduled pods, in lists of five hundred."""
    for begin in range(0, count, 500):
        items = "".join(
            f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p-{index}, labels: {{app: web}}}}\n"
            "spec: {automountServiceAccountToken: false, containers: [{name: c, image: nginx}]}\n"
            for index in range(begin, min(begin + 500, count))
        )
        subprocess.run(
            [program, "create", "-n", namespace, "-f", "-"],
            env=environment,
            input=items.encode(),
            check=True,
            stdout=subprocess.DEVNULL,
        )


def _median(command: list[str], environment: dict[str, str], runs: int, cold: Path | None) -> float:
    times = []
    for _ in range(runs + 1):
        if cold is not None:
            shutil.rmtree(cold / ".kube", ignore_errors=True)
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        times.append(time.perf_counter() - began)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode()}")
    return statistics.median(times[1:])


def _memory(command: list[str], environment: dict[str, str]) -> float:
    """The most memory that a run had, in MiB."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL);"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code, *command], env=environment, capture_output=True, text=True)
    return int(done.stdout) / 1024
