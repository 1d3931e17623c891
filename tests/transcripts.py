"""Transcripts: requests one after the other, and what an upstream server answered, as data.

    flags    what both servers are started with (for the reader; the test's fixture has them)
    show     the parts of an answer that matter, as paths (`spec/tolerations`), for steps that say nothing else
    steps    in order
      do       method and path; `{ns}` is a namespace of the transcript's own
      as       the user's name, if it is not the administrator
      body     what is sent
      patch    the kind of patch, for PATCH: merge (the default), strategic, json
      show     as above
      answer   status, message of a refusal, warnings, and what is shown; written by tools/record_transcripts.py

Whatever differs from run to run (times, uids, random names) is written as `<time>`, `<uid>` and so on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Protocol

import yaml

_PATCHES = {"merge": "merge-patch", "strategic": "strategic-merge-patch", "json": "json-patch"}
_VOLATILE = (
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-<random>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "<uid>"),
)


class Call(Protocol):
    """Sends a request as a user (empty = the administrator): method, path, body, media type."""

    def __call__(self, user: str, method: str, path: str, body: Any, media: str) -> tuple[int, Any, list[str]]: ...


def load(path: Path) -> dict[str, Any]:
    """A transcript."""
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def play(document: dict[str, Any], namespace: str, call: Call) -> list[dict[str, Any]]:
    """What a server answers to each step."""
    answers = []
    for step in document["steps"]:
        method, path = step["do"].split(" ", 1)
        media = "application/json"
        if method == "PATCH":
            media = f"application/{_PATCHES[step.get('patch', 'merge')]}+json"
        body = json.loads(json.dumps(step.get("body")).replace("{ns}", namespace))
        status, answer, warnings = call(step.get("as", ""), method, path.replace("{ns}", namespace), body, media)
        outcome: dict[str, Any] = {"status": status}
        if status >= 400:
            outcome["message"] = answer.get("message")
        if warnings:
            outcome["warnings"] = [each.split('"', 1)[1].rsplit('"', 1)[0].replace('\\"', '"') for each in warnings]
        if status < 400:
            for place in step.get("show", document.get("show", ())):
                outcome[place] = _part(answer, place)
        answers.append(_normalized(outcome, namespace))
    return answers


def differences(document: dict[str, Any], answers: list[dict[str, Any]]) -> list[str]:
    """Where the answers are not those of the transcript."""
    return [
        f"step {index}, {step.get('name', step['do'])}:\n  recorded {step['answer']}\n  answered {answer}"
        for index, (step, answer) in enumerate(zip(document["steps"], answers, strict=True))
        if step["answer"] != answer
    ]


def _part(value: Any, place: str) -> Any:
    for name in place.split("/"):
        name = name.replace("~1", "/")
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = (value or {}).get(name)
    return value


def _normalized(outcome: dict[str, Any], namespace: str) -> dict[str, Any]:
    text = json.dumps(outcome).replace(namespace, "<ns>")
    for pattern, name in _VOLATILE:
        text = pattern.sub(name, text)
    normalized: dict[str, Any] = json.loads(text)
    return normalized
