"""Plays transcripts to an upstream API server and writes its answers into the files.

    PYTHONPATH=tests python tools/record_transcripts.py FILE... --server https://127.0.0.1:6443 --token TOKEN
        [--user NAME=TOKEN]... [--check]

The form of the files is described in tests/transcripts.py. With --check nothing is written; differences are shown.
"""

from __future__ import annotations

import argparse
import http.client
import json
import secrets
import ssl
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from transcripts import differences, load, play


class Server:
    """An API server that we trust."""

    def __init__(self, url: str, tokens: dict[str, str]) -> None:
        self._host = urlsplit(url).netloc
        self._tokens = tokens

    def __call__(self, user: str, method: str, path: str, body: Any, media: str) -> tuple[int, Any, list[str]]:
        """Code, object and warnings of an answer."""
        connection = http.client.HTTPSConnection(self._host, context=ssl._create_unverified_context())
        headers = {"Authorization": f"Bearer {self._tokens[user]}", "Content-Type": media}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        warnings = [value for name, value in response.getheaders() if name.lower() == "warning"]
        connection.close()
        return response.status, answer, warnings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--user", action="append", default=[])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tokens = {"": options.token, **dict(each.split("=", 1) for each in options.user)}
    server = Server(options.server, tokens)
    different = 0
    for path in options.files:
        document = load(path)
        namespace = f"t-{secrets.token_hex(4)}"
        server("", "POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}, "application/json")
        answers = play(document, namespace, server)
        if options.check:
            found = differences(document, answers)
            different += len(found)
            print(f"{path}: {len(found)} of {len(answers)} differ", *found, sep="\n")
            continue
        for step, answer in zip(document["steps"], answers, strict=True):
            step["answer"] = answer
        path.write_text(yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True))
        print(f"{path}: {len(answers)} recorded")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
