"""A configuration written back is the same configuration, in upstream's form."""

from __future__ import annotations

import pytest

from pybernetes.scheduler.config.dump import dump
from pybernetes.scheduler.config.load import default, load

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "profiles: [{schedulerName: a, percentageOfNodesToScore: 3}, {schedulerName: b}]\n",
        "profiles: [{pluginConfig: [{name: Mine, args: {a: [1]}}, {name: InterPodAffinity, args: "
        "{hardPodAffinityWeight: 7}}]}]\n",
        "extenders: [{urlPrefix: 'http://x', filterVerb: f, httpTimeout: 90s, enableHTTPS: true}]\n",
    ],
)
def test_what_is_written_says_everything_and_writing_it_again_changes_nothing(text: str) -> None:
    once = dump(load((HEAD + text).encode()))
    assert b"podMaxBackoffSeconds: 10" in once
    assert b"name: NodeResourcesFit" in once
    assert dump(_without_defaults(once)) == once


def _without_defaults(text: bytes) -> object:
    """The file alone: all plugins are named in it, so none may come from the defaults."""
    from pybernetes.api.gocompat import gojson
    from pybernetes.api.yaml import yaml_to_json
    from pybernetes.scheduler.config.load import decode
    from pybernetes.scheduler.config.v1.types import KubeSchedulerConfiguration

    config, problems = decode(KubeSchedulerConfiguration, gojson.loads(yaml_to_json(text)[0]))
    assert problems == []
    return config


def test_the_form_is_upstream_s() -> None:
    text = dump(default()).decode()
    assert "  qps: 50\n" in text
    assert "    permit: {}\n" in text
    assert "      - name: TaintToleration\n        weight: 3\n" in text
    assert "      ignorePreferredTermsOfExistingPods: false\n" in text
