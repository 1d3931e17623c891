"""Where the files of a build come from: the folder of a kustomization, others below it, URLs, and git repositories.

A folder may be entered only if it is none that the build is in already, so that kustomizations cannot go in circles.
Files must lie in or below the kustomization's folder unless the user lifts that.
"""

from __future__ import annotations

import os
import re

from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Folder:
    """A folder that a build may read from. `parents` are the folders it came through."""

    def __init__(self, root: str, restricted: bool, parents: tuple[Folder, ...] = (), repository: str = "") -> None:
        self.root = root
        self.restricted = restricted
        self.parents = parents
        self.repository = repository
        """The folder of the git clone that this one is part of, or nothing."""
        self.url = ""

    def load(self, name: str) -> bytes:
        """The content of a file or URL. Raises CLIError."""
        if name.startswith(("http://", "https://")):
            from pybernetes.kubectl.manifests import fetch

            return fetch(name)
        path = os.path.normpath(os.path.join(self.root, name))
        real = _real(path)
        if os.path.isdir(real):
            raise CLIError(f"'{real}' must resolve to a file")
        if self.restricted and not _inside(real, self.root):
            raise CLIError(f"security; file '{real}' is not in or below '{self.root}'")
        try:
            with open(real, "rb") as file:
                return file.read()
        except OSError as error:
            raise CLIError(f"open {real}: {(error.strerror or '').lower()}") from None

    def enter(self, name: str, cleanup: list[Callable[[], None]]) -> Folder:
        """Another folder, by its path from this one or by the URL of a git repository. Raises CLIError."""
        if not name:
            raise CLIError("new root cannot be empty")
        repository = parse_repository(name)
        if repository is not None:
            return self._clone(name, repository, cleanup)
        if os.path.isabs(name):
            raise CLIError(f"new root '{name}' cannot be absolute")
        root = confirmed(os.path.join(self.root, name))
        if self.repository and not _inside(root, self.repository) and root != self.repository:
            raise CLIError(
                "security; bases in kustomizations found in cloned git repos must be within the repo,"
                f" but base '{root}' is outside '{self.repository}'"
            )
        for visited in (self, *reversed(self.parents)):
            if visited.root == root or _inside(visited.root, root):
                raise CLIError(f"cycle detected: candidate root '{root}' contains visited root '{visited.root}'")
        return Folder(root, self.restricted, (*self.parents, self), self.repository)

    def _clone(self, name: str, repository: Repository, cleanup: list[Callable[[], None]]) -> Folder:
        for visited in (self, *reversed(self.parents)):
            if visited.url and visited.url.startswith(name):
                raise CLIError(f"cycle detected: URI '{name}' referenced by previous URI '{visited.url}'")
        target = repository.clone(cleanup)
        root = confirmed(os.path.join(target, repository.path))
        if root != target and not _inside(root, target):
            raise CLIError(f'"{root}" refers to directory outside of repo "{target}"')
        folder = Folder(root, True, (*self.parents, self), target)
        folder.url = name
        return folder


def confirmed(path: str, what: str = "") -> str:
    """The real path of a folder. Raises CLIError with kustomize's message for an invalid base."""
    normal = os.path.abspath(path)
    begin = "must build at directory: "
    try:
        real = _real(normal, what)
    except CLIError as error:
        raise CLIError(f"{begin}not a valid directory: {error.message}") from None
    if not os.path.isdir(real):
        raise CLIError(f"{begin}'{what or real}': file is not directory")
    return real


def _real(path: str, what: str = "") -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise CLIError(f"evalsymlink failure on '{what or path}' : lstat {error.filename or path}: {reason}") from None


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip(os.sep) + os.sep)


class Repository:
    """A git repository to clone: its URL, what to check out, and the folder in it."""

    def __init__(self, url: str, path: str, ref: str, timeout: float, submodules: bool) -> None:
        self.url = url
        self.path = path
        self.ref = ref
        self._timeout = timeout
        self._submodules = submodules

    def clone(self, cleanup: list[Callable[[], None]]) -> str:
        """Fetches one commit with git and returns the folder; `cleanup` removes it at the end. Raises CLIError."""
        import shutil
        import subprocess
        import tempfile

        folder = os.path.realpath(tempfile.mkdtemp(prefix="kustomize-"))
        cleanup.append(lambda: shutil.rmtree(folder, ignore_errors=True))
        steps = [
            ["init"],
            # After -- nothing is an option: `?ref=--upload-pack=COMMAND` of a base would run the command.
            ["remote", "add", "--", "origin", self.url],
            ["fetch", "--depth=1", "--", "origin", self.ref or "HEAD"],
            ["checkout", "FETCH_HEAD"],
        ]
        if self._submodules:
            steps.append(["submodule", "update", "--init", "--recursive"])
        for step in steps:
            command = ["git", *step]
            try:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=self._timeout)
            except FileNotFoundError:
                raise CLIError("no 'git' program on path: exec: \"git\": executable file not found in $PATH") from None
            except subprocess.TimeoutExpired:
                shown = f"{self._timeout:g}s"
                raise CLIError(f"hit {shown} timeout running '{' '.join(command)}'") from None
            except subprocess.CalledProcessError as error:
                output = (error.stdout + error.stderr).strip()
                raise CLIError(
                    f"failed to run '{' '.join(command)}': {output}: exit status {error.returncode}"
                ) from None
        return folder


_HOST = re.compile(r"(git::)?((?:https?|ssh|file)://|(?:[\w.-]+@)(?=[\w.-]+:)|(?=github\.com[/:]))", re.IGNORECASE)


def parse_repository(name: str) -> Repository | None:
    """Parse a URL that may name a git repository; None for one that does not."""
    text, _, parameters = name.partition("?")
    match = _HOST.match(text)
    if match is None:
        return None
    text = text.removeprefix("git::")
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "", text
    url, path = _split_path(scheme, rest)
    if not url:
        return None
    options = dict(pair.partition("=")[::2] for pair in parameters.split("&") if pair)
    timeout = options.get("timeout", "27s")
    from pybernetes.kubectl.flags import duration

    try:
        seconds = duration(timeout if not timeout.isdigit() else f"{timeout}s")
    except ValueError:
        seconds = 27.0
    ref = options.get("ref") or options.get("version") or ""
    return Repository(url, path.strip("/"), ref, seconds, options.get("submodules", "true") != "false")


def _split_path(scheme: str, rest: str) -> tuple[str, str]:
    """The URL to clone, and the path in the repository: after `//`, `.git`, `_git/NAME`, or ORGANIZATION/NAME."""
    front = f"{scheme}://" if scheme else ""
    if scheme.lower() == "file":
        base, _, path = rest.partition("//")
        if not path and ".git/" in rest:
            base, _, path = rest.partition(".git/")
            base += ".git"
        return front + base, path
    if "//" in rest:
        base, _, path = rest.partition("//")
        return _address(front, base), path
    if ".git" in rest:
        base, _, path = rest.partition(".git")
        return _address(front, base) + ("" if _address(front, base).endswith(".git") else ".git"), path
    host, slash, tail = rest.replace(":", "/", 1).partition("/") if not scheme else rest.partition("/")
    parts = tail.split("/")
    if not slash or len(parts) < 2 or not all(parts[:2]):
        return "", ""
    base = rest[: len(host) + 1 + len(parts[0]) + 1 + len(parts[1])]
    return _address(front, base), "/".join(parts[2:])


def _address(front: str, base: str) -> str:
    """A URL that git understands; `github.com/...` without a scheme is one with https."""
    if not front and base.startswith("github.com"):
        return f"https://github.com/{base[len('github.com') + 1 :]}.git".replace(".git.git", ".git")
    if front.startswith("https") and base.startswith("github.com/") and not base.endswith(".git"):
        return f"{front}{base}.git"
    return front + base
