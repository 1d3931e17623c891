"""Runs one command line: finds the command, parses its flags, turns what it raises into kubectl's words.

No traceback reaches the user: errors end with one line and an exit code, a reader that went away and Ctrl-C quietly.
"""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl.command import Command, load
from pybernetes.kubectl.commands import COMMANDS
from pybernetes.kubectl.context import Context
from pybernetes.kubectl.errors import CLIError, PlainError
from pybernetes.kubectl.flags import Flag, FlagError, Flags, HelpWanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

GLOBAL_FLAGS: tuple[Flag, ...] = (
    Flag("as", help="User to impersonate for the request."),
    Flag("as-group", "array", help="Group to impersonate; may be repeated."),
    Flag("as-uid", help="UID to impersonate."),
    Flag("as-user-extra", "array", help="Extra of the impersonated user as key=value; may be repeated."),
    Flag("cache-dir", help="Folder of the discovery cache (default ~/.kube/cache)."),
    Flag("certificate-authority", help="File with the certificate authority of the server."),
    Flag("client-certificate", help="File with the client certificate."),
    Flag("client-key", help="File with the key of the client certificate."),
    Flag("cluster", help="Name of the kubeconfig cluster to use."),
    Flag("context", help="Name of the kubeconfig context to use."),
    Flag("disable-compression", "bool", help="Do not ask the server for compressed responses."),
    Flag("insecure-skip-tls-verify", "bool", help="Do not verify the server's certificate. Insecure."),
    Flag("kubeconfig", help="Path of the kubeconfig file."),
    Flag("kuberc", help="Path of the kuberc file with preferences."),
    Flag("log-flush-frequency", "duration", 5.0, "Maximum time between log flushes."),
    Flag("match-server-version", "bool", help="Require the server's version to be the client's."),
    Flag("namespace", short="n", help="Namespace of the request."),
    Flag("password", help="Password for basic authentication."),
    Flag("profile", default="none", help="Profile to capture (none|cpu|heap|goroutine|threadcreate|block|mutex)."),
    Flag("profile-output", default="profile.pprof", help="File for the profile."),
    Flag("request-timeout", default="0", help="Time to wait for one server request; 0 means no limit."),
    Flag("server", short="s", help="Address of the API server."),
    Flag("tls-server-name", help="Name that the server's certificate is checked for."),
    Flag("token", help="Bearer token for the API server."),
    Flag("user", help="Name of the kubeconfig user to use."),
    Flag("username", help="Username for basic authentication."),
    Flag("v", "int", help="Verbosity of the log.", short="v"),
    Flag("vmodule", help="Verbosity by source file pattern."),
    Flag("warnings-as-errors", "bool", help="Exit with code 1 after a warning of the server."),
)


def process(argv: list[str]) -> NoReturn:
    """Runs the process's command line and ends the process without the interpreter's slow shutdown."""
    _open_closed()
    try:
        sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
        code = main(argv[1:])
    except KeyboardInterrupt:  # a second Ctrl-C, while the first one is handled
        os._exit(130)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):
        code = code or 1
    except OSError as error:
        if code == 0:
            os.write(2, f"error: write /dev/stdout: {(error.strerror or str(error)).lower()}\n".encode())
        code = code or 1
    os._exit(code)


def _open_closed() -> None:
    """Opens /dev/null for standard streams that the caller closed, before a socket or a file takes their numbers."""
    for name, number, mode in (("stdin", 0, os.O_RDONLY), ("stdout", 1, os.O_WRONLY), ("stderr", 2, os.O_WRONLY)):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def console() -> NoReturn:
    """The console script `kubectl-pyb`."""
    process(sys.argv)


def main(argv: list[str]) -> int:
    """Runs a command line and returns its exit code."""
    return _guarded(lambda: _run(argv))


def run_command(command: Command, path: list[str], argv: list[str]) -> int:
    """Runs a command that is not one of kubectl's own, with the global flags of kubectl."""
    return _guarded(lambda: _execute(command, path, argv, argv))


def _guarded(run: Callable[[], int]) -> int:
    try:
        return run()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence()
        return 1
    except CLIError as error:
        _flush()
        text = error.text()
        if text:
            sys.stderr.write(text if text.endswith("\n") else text + "\n")
        return error.code
    except ImportError as error:
        _flush()
        sys.stderr.write(f"error: {error}\n")
        return 1
    except RecursionError:
        sys.stderr.write("error: the input is nested too deeply\n")
        return 1
    except OSError as error:
        _flush()
        what = (error.strerror or str(error)).lower()
        sys.stderr.write(f"error: {f'open {error.filename}: ' if error.filename else ''}{what}\n")
        return 1
    except Exception as error:
        _flush()
        sys.stderr.write(f"error: {_unexpected(error)}\n")
        return 1


def _unexpected(error: Exception) -> str:
    """One line for an exception that no command expects, such as the answer of a server that is no API server."""
    what = " ".join(str(error).split())
    if isinstance(error, KeyError | TypeError | AttributeError | IndexError):
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        where = f" in {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
        return f"unexpected data: {type(error).__name__}: {what}{where}"
    return what or type(error).__name__


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _silence()


def _silence() -> None:
    """The reader of stdout is gone: nothing that is still buffered may raise again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        pass


def _run(argv: list[str]) -> int:
    if argv and argv[0] == "__complete":
        from pybernetes.kubectl.commands.completion import complete

        try:
            words = complete(argv[1:])
        except CLIError:
            words = []
        sys.stdout.write("".join(f"{word}\n" for word in words) + ":4\n")
        return 0
    argv = _aliases(argv)
    command, path, rest = find(argv)
    if command is None:
        return _no_command(path, rest, argv)
    return _execute(command, path, rest, argv)


def _execute(command: Command, path: list[str], rest: list[str], argv: list[str]) -> int:
    flags = Flags([*command.flags, *GLOBAL_FLAGS])
    try:
        arguments = flags.parse(rest)
        _defaults(flags, path)
    except HelpWanted:
        from pybernetes.kubectl import usage

        sys.stdout.write(usage.command(command, path))
        return 0
    except FlagError as error:
        raise CLIError(f"{error.message}\nSee '{' '.join(path)} --help' for usage.") from None
    _refuse(flags)
    for line in flags.deprecations:
        sys.stderr.write(line + "\n")
    if command.deprecated:
        sys.stderr.write(f'Command "{command.name}" is deprecated, {command.deprecated}\n')
    if command.run is None:
        from pybernetes.kubectl import usage

        if command.help_on_stdout and not arguments:
            sys.stdout.write(usage.command(command, path))
            return 1
        if arguments:
            given = " ".join(arguments)
            raise CLIError(f"unknown command \"{given}\"\nSee '{' '.join(path)} -h' for help and examples")
        sys.stderr.write(usage.command(command, path))
        return 1
    context = Context(flags, " ".join(path), argv)
    code = command.run(context, arguments) or 0
    if flags.on("warnings-as-errors") and context.warned():
        count = context.warned()
        raise CLIError(f"{count} warning{'s' if count > 1 else ''} received")
    return code


# Flags of upstream's kubectl that have no effect here: refused, so that no user counts on them.
_UNSUPPORTED = (
    "profile", "profile-output", "vmodule",
)  # fmt: skip


def _refuse(flags: Flags) -> None:
    for name in _UNSUPPORTED:
        # `debug` has a --profile of its own, whose default is not `none`.
        own = name == "profile" and flags.known[name].default != "none"
        if flags.changed(name) and not own and flags[name] != flags.known[name].default:
            raise CLIError(f"--{name} is not supported by this kubectl")


def _aliases(argv: list[str]) -> list[str]:
    """The command line after the aliases of a kuberc; the file is looked for only, not parsed, where there is none."""
    if "pybernetes.kubectl.kuberc" in sys.modules:  # an earlier command line of this process had preferences
        from pybernetes.kubectl import kuberc

        kuberc.current = kuberc.Preferences({})
    if os.environ.get("KUBECTL_KUBERC") == "false":
        return argv
    given = any(word == "--kuberc" or word.startswith("--kuberc=") for word in argv)
    if not given:
        path = os.environ.get("KUBERC") or os.path.join(os.environ.get("HOME", ""), ".kube", "kuberc")
        if path == "off" or (not os.environ.get("KUBERC") and not os.path.exists(path)):
            return argv
    from pybernetes.kubectl import kuberc

    try:
        path, explicit = kuberc.location(kuberc.given_file(argv))
        return kuberc.expand(argv, path, explicit)
    except CLIError as error:
        raise PlainError(f"error occurred while applying preferences {error.message}") from None


def _defaults(flags: Flags, path: list[str]) -> None:
    """Values of flags that the user did not give, from the defaults of a kuberc."""
    if "pybernetes.kubectl.kuberc" in sys.modules and path[1:2] != ["kuberc"]:
        from pybernetes.kubectl import kuberc

        kuberc.apply_defaults(flags, path)


def find(argv: list[str]) -> tuple[Command | None, list[str], list[str]]:
    """The command that a command line names, the path to it, and the words that are left for its flags."""
    values = {flag.name for flag in GLOBAL_FLAGS if flag.no_value is None}
    shorts = {flag.short for flag in GLOBAL_FLAGS if flag.short and flag.no_value is None}
    command: Command | None = None
    path = ["kubectl"]
    rest: list[str] = []
    position = 0
    while position < len(argv):
        word = argv[position]
        position += 1
        if word == "--":
            return command, path, [*rest, *argv[position - 1 :]]
        if word.startswith("-") and len(word) > 1:
            rest.append(word)
            name = word.lstrip("-")
            takes = name in values if word.startswith("--") else len(word) == 2 and name in shorts
            if takes and position < len(argv):
                rest.append(argv[position])
                position += 1
            continue
        if command is None:
            if word == "help" or word not in COMMANDS:
                return None, path, [*rest, word, *argv[position:]]
            command = load(COMMANDS[word][0])
        else:
            child = command.child(word)
            if child is None:
                return command, path, [*rest, word, *argv[position:]]
            command = child
        path.append(command.name)
        if not command.children:
            return command, path, [*rest, *argv[position:]]
    return command, path, rest


def _words(rest: list[str]) -> list[str]:
    """The words of a command line without a command that are no flags and no values of global flags."""
    try:
        return Flags(GLOBAL_FLAGS).parse(rest)
    except (FlagError, HelpWanted):
        return [word for word in rest if not word.startswith("-")]


def _no_command(path: list[str], rest: list[str], argv: list[str]) -> int:
    from pybernetes.kubectl import usage

    words = _words(rest)
    if words and words[0] != "help":
        from pybernetes.kubectl.commands.plugin import run_plugin

        if argv[0].startswith("-"):
            raise PlainError(f"Error: flags cannot be placed before plugin name: {argv[0]}")
        run_plugin(argv)
        raise CLIError(usage.unknown_command(words[0]))
    if words:
        if len(words) == 1:
            sys.stdout.write(usage.root())
            return 0
        command, path, left = find(words[1:])
        if command is None or (left and command.children):
            topics = " ".join(f"`{word}`" for word in words[1:])
            sys.stderr.write(f"Unknown help topic [{topics}]\n\n{usage.root()}")
            return 0
        sys.stdout.write(usage.command(command, path))
        return 0
    try:
        Flags(GLOBAL_FLAGS).parse(rest)
    except HelpWanted:
        pass
    except FlagError as error:
        raise CLIError(f"{error.message}\nSee 'kubectl --help' for usage.") from None
    sys.stdout.write(usage.root())
    return 0
