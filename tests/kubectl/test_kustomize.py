"""`kubectl kustomize`: what upstream's kubectl v1.33 (kustomize v5.6) printed, and what only newer ones can do.

Messages that hold an address in upstream's memory are not among them.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import kubectl_kustomizations
import pytest

from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.kustomize import build
from pybernetes.kubectl.kustomize.patches import Schema

CASES = sorted(kubectl_kustomizations.FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_kustomizations_are_built_as_by_upstream(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = kubectl_kustomizations.load(path)
    case.lay_out(tmp_path)
    code = kubectl.main(["kustomize", str(tmp_path)])
    out, err = (text.replace(os.path.realpath(tmp_path), "$DIR") for text in capsys.readouterr())
    assert (out, err) == (case.stdout, case.stderr)
    assert code == (0 if case.stdout or "error:" not in case.stderr else 1)


def make(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {hostname: x, containers: [{name: c, image: 'a:1'}]}\n"


def test_a_replacement_may_be_a_text(tmp_path: Path) -> None:
    rule = "{sourceValue: b, targets: [{select: {kind: Pod}, fieldPaths: [spec.hostname]}]}"
    make(tmp_path, kustomization=f"resources: [pod.yaml]\nreplacements: [{rule}]\n", pod=POD)
    assert b"hostname: b\n" in build(str(tmp_path))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": {"b": 1}}', '{"a":{"b":2}}'),
        ('{\n  "a": {"b": 1}\n}', '{\n  "a": {\n    "b": 2\n  }\n}'),
        ("a:\n  b: 1", "a:\n  b: 2"),
    ],
)
def test_a_replacement_goes_into_documents_that_a_field_holds(before: str, after: str, tmp_path: Path) -> None:
    rule = '{sourceValue: "2", targets: [{select: {kind: ConfigMap}, fieldPaths: [data.f.a.b]}]}'
    indented = before.replace("\n", "\n    ")
    config = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  f: |-\n    {indented}\n"
    make(tmp_path, kustomization=f"resources: [c.yaml]\nreplacements: [{rule}]\n", c=config)
    from pybernetes.kubectl.manifests import parse_yaml

    assert parse_yaml(build(str(tmp_path)))["data"]["f"] == after


def test_a_base_may_be_a_git_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repository.git"
    (repository / "base").mkdir(parents=True)
    make(repository / "base", kustomization="resources: [pod.yaml]\n", pod=POD)
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for step in (["init", "-q"], ["add", "."], ["commit", "-qm", "base"], ["tag", "v1"]):
        subprocess.run([*git, *step], check=True, capture_output=True)
    folder = tmp_path / "over"
    folder.mkdir()
    make(folder, kustomization=f"resources: ['file://{repository}/base?ref=v1']\nnamePrefix: a-\n")
    assert b"name: a-p\n" in build(str(folder))


def test_the_ref_of_a_repository_runs_no_command(tmp_path: Path) -> None:
    repository, ran = tmp_path / "repository.git", tmp_path / "ran"
    subprocess.run(["git", "init", "-q", str(repository)], check=True, capture_output=True)
    make(tmp_path, kustomization=f"resources: ['file://{repository}/base?ref=--upload-pack=touch {ran};']\n")
    with pytest.raises(CLIError, match="invalid refspec"):
        build(str(tmp_path))
    assert not ran.exists()


def test_definitions_that_refer_to_themselves_end(tmp_path: Path) -> None:
    schema = Schema()
    kinds = [{"group": "apps", "version": "v1", "kind": "Deployment"}]
    deployment = {"properties": {"spec": {"$ref": "#/definitions/a"}}, "x-kubernetes-group-version-kind": kinds}
    definitions = {"D": deployment, "a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}
    schema.use(json.dumps({"definitions": definitions}).encode())
    assert schema.type_of("apps/v1", "Deployment") == "D"
    assert schema._resolve({"$ref": "#/definitions/a"}) == {}
    assert schema._resolve({"$ref": "#/definitions/D"}) == deployment


def test_a_git_repository_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    make(tmp_path, kustomization=f"resources: ['file://{tmp_path}/nothing.git']\n")
    with pytest.raises(CLIError, match="failed to run 'git fetch"):
        build(str(tmp_path))


def test_helm_charts_are_refused(tmp_path: Path) -> None:
    make(tmp_path, kustomization="helmCharts: [{name: x}]\n")
    with pytest.raises(CLIError, match="helm charts are not supported"):
        build(str(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "resources: [a.yaml]\nimages: [{name: '('}]\n",
        'resources: [a.yaml]\npatches: [{target: {name: \'(\'}, patch: \'[{"op": "remove", "path": "/x"}]\'}]\n',
        "resources: [a.yaml]\npatches: [{patch: 'text'}]\n",
        "resources: [a.yaml]\npatches: [{patch: '- 5'}]\n",
        "resources: [a.yaml]\nlabels: 5\n",
        "resources: 5\n",
        "- 5\n",
        "text\n",
        "resources: [5]\n",
        "resources: ['']\n",
        "resources: [/tmp]\n",
        "resources: [a.yaml]\nreplacements: [{path: a.yaml}]\n",
        "resources: [a.yaml]\nreplacements: [{path: nothing.yaml}]\n",
        "resources: [a.yaml]\nconfigurations: [nothing.yaml]\n",
        "resources: [a.yaml]\nconfigurations: [a.yaml]\n",
        "resources: [a.yaml]\nopenapi: {path: a.yaml}\n",
        "resources: [a.yaml]\ncrds: [nothing.yaml]\n",
        "resources: [a.yaml]\ntransformers: [a.yaml]\n",
        "resources: [a.yaml]\nvalidators: ['{apiVersion: builtin, kind: Foo, metadata: {name: x}}']\n",
        "resources: [a.yaml]\ngenerators: ['{apiVersion: builtin, kind: Foo, metadata: {name: x}}']\n",
        "resources: [a.yaml]\nnamespace: x\nnamePrefix: {a: b}\n",
        "resources: [null]\n",
        "resources: [a.yaml]\npatches: [null]\n",
        "resources: [a.yaml]\ntransformers: ['{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: x},"
        " prefix: a, fieldSpecs: 5}']\n",
        "resources: [a.yaml]\nvars: [{name: A, objref: {kind: Nothing, name: x, apiVersion: v1}}]\n",
    ],
)
def test_bad_kustomizations_are_errors_of_one_cause(text: str, tmp_path: Path) -> None:
    make(tmp_path, kustomization=text, a=POD)
    with pytest.raises(CLIError):
        build(str(tmp_path))


@pytest.mark.parametrize(
    "content", ["a: [\n", "text\n", "- 5\n", "kind: Pod\n", "apiVersion: v1\nkind: Pod\nmetadata: 5\n", "\0", "5: 6\n"]
)
def test_bad_files_are_errors_of_one_cause(content: str, tmp_path: Path) -> None:
    make(tmp_path, kustomization="resources: [a.yaml]\nnamePrefix: a-\n", a=content)
    with pytest.raises(CLIError):
        build(str(tmp_path))


@pytest.mark.parametrize(
    "content",
    ["spec: 5", "spec: [5]", "spec: {containers: 5}", "spec: {containers: [5, null]}", "spec: {template: null}"],
)
def test_odd_objects_end_without_a_traceback(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = "namePrefix: a-\nnamespace: b\ncommonLabels: {a: b}\ncommonAnnotations: {a: b}\nimages: [{name: a}]\n"
    obj = f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\n{content}\n"
    make(tmp_path, kustomization=f"resources: [a.yaml]\n{every}", a=obj)
    kubectl.main(["kustomize", str(tmp_path)])
    assert "unexpected data" not in capsys.readouterr().err
