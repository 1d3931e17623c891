"""The small YAML reader agrees with the real one, or leaves the document to it."""

from __future__ import annotations

import random

import pytest
import yaml

from pybernetes.kubectl import simple_yaml

PLAIN = """\
# a kubeconfig
apiVersion: v1
kind: Config
current-context: 'one'
preferences: {}
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTg==
    server: https://127.0.0.1:6443
    insecure-skip-tls-verify: true
  name: one
-   name: "two"
    cluster:
        server: https://[::1]:6443   
contexts:
  - context: {}
    name: c
users:
- name: u
  user:
    exec:
      args:
      - get-token
      - --cluster=x
      env: null
      command: /bin/x
"""


def test_a_usual_kubeconfig_is_read() -> None:
    text = PLAIN.replace("      - --cluster=x\n", "      - x\n")
    assert simple_yaml.parse(text.encode()) == yaml.safe_load(text)


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        "a: 1",
        "a: 1e3",
        "a: 2020-01-01",
        "a: yes",
        "a: On",
        "a: |\n  text",
        "a: [b, c]",
        "a: {b: c}",
        "a: &x b\nc: *x",
        "a: 'it''s'",
        'a: "x\\ny"',
        "a: b # c",
        "a: b: c",
        "a: b\na: c",
        "a:\n  b: c\n d: e",
        "a: b\n  c",
        "a:\tb",
        "a: b\n---\nc: d",
        "1: a",
        "a: 0x10",
        "a: 1_000",
        "a: .5",
        "a: ünï",
        "- a",
        "text",
        "",
    ],
)
def test_what_it_does_not_know_is_left_to_the_real_parser(text: str) -> None:
    found = simple_yaml.parse(text.encode())
    assert found is None or found == yaml.safe_load(text)


def test_it_never_reads_anything_else_than_the_real_parser(run_seed: int) -> None:
    draw = random.Random(run_seed)
    pieces = [
        "a",
        "b",
        ": ",
        ":",
        "- ",
        "-",
        "\n",
        "\n  ",
        "\n    ",
        " ",
        "'",
        '"',
        "#",
        "1",
        "true",
        "no",
        "~",
        "{}",
        "x.y",
        "|",
    ]
    for _ in range(3000):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(1, 14)))
        found = simple_yaml.parse(text.encode())
        if found is not None:
            try:
                real = yaml.safe_load(text)
            except yaml.YAMLError:
                real = "refused"
            assert found == real, text
