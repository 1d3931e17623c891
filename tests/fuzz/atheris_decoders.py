"""A coverage-guided fuzzer on the decoders: JSON and YAML bodies of some kinds, down to a stored object.

By hand, with as much time as you like:

    python tests/fuzz/atheris_decoders.py -max_total_time=300

It stops at the first input that gives anything but an object or a refusal, and writes it to a file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import atheris
import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))

with atheris.instrument_imports(include=["pybernetes.api", "pybernetes.apiserver"]):
    from fuzz import guided
    from fuzz.journey import STORED, journey

    from pybernetes.api.yaml import YAMLProblem, yaml_to_json

KINDS = ("Pod", "Deployment", "Service", "ConfigMap", "CustomResourceDefinition", "HorizontalPodAutoscaler")
RESOURCES = [each for each in STORED if each.kind in KINDS]


def one_input(data: bytes) -> None:
    """The first byte chooses kind and form, the rest is the body."""
    if not data:
        return
    resource = RESOURCES[data[0] % len(RESOURCES)]
    body = data[1:]
    if data[0] & 0x80:
        try:
            body, _ = yaml_to_json(body)
        except YAMLProblem:
            return
    journey(resource).travel(body, "Strict" if data[0] & 0x40 else "Warn")


if __name__ == "__main__":
    seeds = [bytes([n]) + json.dumps(journey(each).base()).encode() for n, each in enumerate(RESOURCES)]
    seeds += [bytes([0x80 + n]) + yaml.safe_dump(journey(each).base()).encode() for n, each in enumerate(RESOURCES)]
    guided.fuzz(one_input, seeds, set().union(*(guided.names_of_fields(each.type) for each in RESOURCES)))
