"""Command lines that need no server, with what upstream's kubectl v1.33 printed for them."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path

import pytest

from pybernetes.kubectl import main as kubectl

CONFIG_MAP = """apiVersion: v1
kind: ConfigMap
metadata: {name: cm, labels: {a: b}}
data: {k: v, m: "5"}
"""
LABEL = "label --local -f cm.yaml q=r"


def run(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, int]:
    code = kubectl.main(shlex.split(line))
    out, err = capsys.readouterr()
    return out, err, code


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cm.yaml").write_text(CONFIG_MAP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))


PRINTED = {
    "go-template={{printf `%T %T %s` .nope 5 5}}": "<nil> int %!s(int=5)",
    "go-template={{range $i, $w := .data}}{{$i}}={{$w}} {{end}}{{len .data | printf `%T`}}": "k=v m=5 int",
    "jsonpath={range .data.k}{.x}": "",
    "jsonpath={.kind} {range .metadata}{.name}{end}": "ConfigMap cm",
    "jsonpath={range .data}{.k},": "v,,",
}


@pytest.mark.parametrize(("output", "text"), PRINTED.items(), ids=PRINTED)
def test_templates_print_what_upstreams_do(output: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{LABEL} -o {shlex.quote(output)}", capsys) == (text, "", 0)


REFUSED = {
    "go-template={{index .data 5}}": (
        'output:1:2: executing "output" at <index .data 5>: error calling index: value has type int; should be string'
    ),
    "go-template={{range .kind}}x{{end}}": (
        'output:1:8: executing "output" at <.kind>: range can\'t iterate over ConfigMap'
    ),
    "go-template={{call .x}}": 'output:1:2: executing "output" at <call .x>: error calling call: call of nil',
    "go-template={{template `no`}}": (
        'output:1:11: executing "output" at <{{template "no"}}>: template "no" not defined'
    ),
    "go-template=a {{nil}}": 'output:1:4: executing "output" at <nil>: nil is not a command',
    "jsonpath={foo}": 'error executing jsonpath "{foo}": Error executing template: unrecognized identifier foo',
    "jsonpath={end}": 'error executing jsonpath "{end}": Error executing template: not in range, nothing to end',
}


@pytest.mark.parametrize(("output", "problem"), REFUSED.items(), ids=REFUSED)
def test_templates_fail_with_upstreams_words(output: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, err, code = run(f"{LABEL} -o {shlex.quote(output)}", capsys)
    assert code == 1
    assert problem in err


ERRORS = {
    "patch --local -f cm.yaml -p '{' -o yaml": "error: invalid JSON document\n",
    "patch --local -f cm.yaml -p '[]' -o yaml": "error: invalid JSON document\n",
    """patch --local -f cm.yaml --type=json -p '[{"op":"remove","path":"/no"}]' -o yaml""": (
        "error: error in remove for path: '/no': Unable to remove nonexistent key: no: missing value\n"
    ),
    """patch --local -f cm.yaml --type=json -p '{"a":1}' -o yaml""": (
        "error: json: cannot unmarshal object into Go value of type jsonpatch.Patch\n"
    ),
    "annotate --local -f cm.yaml =b": (
        "error: can only use local files by -f rsrc.yaml or --filename=rsrc.json when --local=true is set\n"
    ),
    "delete --all": "error: at least one resource must be specified to use a selector\n",
    "-n x nope": "Error: flags cannot be placed before plugin name: -n\n",
    "create configmap c --from-literal=a=b --from-literal=a=c": (
        'error: cannot add key "a", another key by that name already exists in Data for ConfigMap "c"\n'
    ),
    "create clusterrole r --verb=get --non-resource-url=x": "error: nonResourceURL should start with /\n",
    "create clusterrole r --verb=get --non-resource-url=/a*b": (
        "error: nonResourceURL only supports wildcard matches when '*' is at the end\n"
    ),
    "create clusterrole r --aggregation-rule=a": (
        'error: invalid argument "a" for "--aggregation-rule" flag: malformed pair, expect string=string\n'
        "See 'kubectl create clusterrole --help' for usage.\n"
    ),
    "create service clusterip s --tcp=80:99999": "error: must be between 1 and 65535, inclusive\n",
    "logs x -c a b": "error: only one of -c or an inline [CONTAINER] arg is allowed\n",
    "logs x --since-time=no": (
        'error: parsing time "no" as "2006-01-02T15:04:05Z07:00": cannot parse "no" as "2006"\n'
    ),
    "config set-cluster x --insecure-skip-tls-verify --certificate-authority=ca": (
        "error: you cannot specify a certificate authority and insecure mode at the same time\n"
    ),
    "config set-credentials u --exec-command=a --exec-env=no": "error: invalid exec-env format: no\n",
    "proxy --unix-socket=/nothing/x": "error: listen unix /nothing/x: bind: no such file or directory\n",
}


@pytest.mark.parametrize(("line", "text"), ERRORS.items(), ids=ERRORS)
def test_bad_command_lines_end_with_upstreams_words(line: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line, capsys) == ("", text, 1)


DOCUMENTS = {
    '{"a":': "error: error parsing STDIN: unexpected EOF\n",
    "{": "error: error parsing STDIN: unexpected EOF\n",
    '{"kind":"Pod","apiVersion":"v1","metadata":5}': (
        'error: unable to decode "STDIN": json: cannot unmarshal number into Go struct field'
        " metadataOnlyObject.metadata of type v1.ObjectMeta\n"
    ),
    '{"kind":"Pod","apiVersion":"v1","metadata":{"name":5}}': (
        'error: unable to decode "STDIN": json: cannot unmarshal number into Go struct field'
        " ObjectMeta.metadata.name of type string\n"
    ),
}


@pytest.mark.parametrize(("document", "text"), DOCUMENTS.items(), ids=DOCUMENTS)
def test_bad_documents_end_with_upstreams_words(
    document: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(document.encode())))
    assert run("label --local -f - a=b", capsys) == ("", text, 1)


def test_a_flag_with_a_value_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    out, err, code = run("-n x", capsys)
    assert (out.splitlines()[0], err, code) == ("kubectl controls a Kubernetes cluster.", "", 0)


def test_an_unknown_help_topic_ends_with_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    out, err, code = run("help nothing", capsys)
    assert (out, code) == ("", 0)
    assert err.startswith("Unknown help topic [`nothing`]\n\nkubectl controls")


def test_the_old_page_of_explain_has_its_old_form() -> None:
    from pybernetes.kubectl.commands.explain import _Explainer, _Missing
    from pybernetes.kubectl.explaining_openapiv2 import page

    text = {"type": "string", "description": "A name of " + "many words " * 10}
    item = {"type": "object", "description": "One.", "required": ["name"], "properties": {"name": text}}
    names = {"type": "object", "additionalProperties": {"type": "string"}}
    items = {"type": "array", "items": {"$ref": "#/s/Item"}, "description": "Items."}
    schema = {"type": "object", "properties": {"items": items, "names": names}}
    explainer = _Explainer({"Item": item})
    assert page(explainer, schema, [], True, _Missing) == (
        "DESCRIPTION:\n     <empty>\n\nFIELDS:\n"
        "   items\t<[]Object>\n      name\t<string>\n   names\t<map[string]string>\n"
    )
    assert page(explainer, schema, ["items"], False, _Missing) == (
        "RESOURCE: items <[]Object>\n\nDESCRIPTION:\n     Items.\n\n     One.\n\nFIELDS:\n"
        "   name\t<string> -required-\n"
        "     A name of many words many words many words many words many words many words\n"
        "     many words many words many words many words\n\n"
    )
    assert page(explainer, schema, ["names"], False, _Missing) == (
        "FIELD:    names <map[string]string>\n\nDESCRIPTION:\n     <empty>\n"
    )
    with pytest.raises(_Missing, match='field "no" does not exist'):
        page(explainer, schema, ["no"], False, _Missing)
