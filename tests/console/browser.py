"""A real Chromium without a window, driven by the DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio"),
    *("--disable-dev-shm-usage", "--remote-debugging-pipe", "--window-size=1300,850", "--force-color-profile=srgb"),
)
PATIENCE = 60.0


class Browser:
    """One browser with one page; what the page's console prints as an error is kept in `errors`."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="pyb-chromium-")
        from_us, to_browser = os.pipe()
        from_browser, to_us = os.pipe()

        def place() -> None:
            # The browser reads commands at descriptor 3 and answers at 4.
            read, write = os.dup(from_us), os.dup(to_us)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [str(shutil.which("chromium")), *FLAGS, f"--user-data-dir={self._folder}", "about:blank"],
            preexec_fn=place,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._write, self._read = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.errors: list[str] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            pass
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise AssertionError("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise AssertionError("the browser has ended")
            self._buffer += piece
        raw, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(raw)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"].get("exception", {}).get("description", script))
        return found["result"].get("value")

    def wait(self, script: str, what: Callable[[Any], bool] = bool) -> Any:
        """The value of the expression once `what` is true of it."""
        deadline = time.monotonic() + PATIENCE
        while not what(value := self.run(script)):
            if time.monotonic() > deadline:
                raise AssertionError(f"{script} is {value!r}; the page says: {self.text()[:2000]}; {self.errors}")
            time.sleep(0.05)
        return value

    def wait_text(self, text: str) -> None:
        """Until the page shows the text."""
        self.wait(f"Boolean(document.body?.innerText.includes({json.dumps(text)}))")

    def text(self) -> str:
        return str(self.run("document.body ? document.body.innerText : ''"))

    def type(self, text: str) -> None:
        """Keys, as a user presses them: characters, or names such as Enter."""
        for key in [text] if len(text) > 1 and text in ("Enter", "Escape", "Tab", "ArrowDown") else text:
            codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40}
            shown = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            code = codes.get(key, ord(key.upper()) if len(key) == 1 else 0)
            common = {"key": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", type="keyDown", **common, **({"text": shown} if shown else {}))
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector: str, text: str = "") -> None:
        """A click on the first element of the selector that has the text."""
        all_of_them = f"[...document.querySelectorAll({json.dumps(selector)})]"
        element = f"{all_of_them}.find(e => e.innerText.includes({json.dumps(text)}))"
        self.wait(f"Boolean({element})")
        self.run(f"{element}.click()")

    def screenshot(self, path: Path) -> None:
        """A picture of the page, to be looked at."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def accessibility(self) -> list[dict[str, Any]]:
        """The nodes of the accessibility tree that are not ignored."""
        return [each for each in self.call("Accessibility.getFullAXTree")["nodes"] if not each.get("ignored")]
