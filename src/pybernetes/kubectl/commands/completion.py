"""`kubectl completion`: scripts for bash, zsh, fish and powershell; they ask `kubectl __complete` for the words."""

from __future__ import annotations

from pybernetes.kubectl.command import Command, load
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.context import Context

_BASH = """# bash completion for kubectl
__kubectl_complete()
{
    local current="${COMP_WORDS[COMP_CWORD]}"
    local words
    words=$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | grep -v '^:')
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "${words//$'\\t'*/}" -- "$current"))
}
complete -o default -F __kubectl_complete kubectl
"""
_ZSH = """#compdef kubectl
compdef _kubectl kubectl
_kubectl()
{
    local -a found
    found=("${(@f)$(${words[1]} __complete "${(@)words[2,$CURRENT]}" 2>/dev/null | grep -v '^:' | cut -f1)}")
    compadd -a found
}
"""
_FISH = """# fish completion for kubectl
function __kubectl_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..-1] 2>/dev/null | grep -v '^:'
end
complete -c kubectl -f -a '(__kubectl_complete)'
"""
_POWERSHELL = """# powershell completion for kubectl
Register-ArgumentCompleter -Native -CommandName 'kubectl' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if (-not $wordToComplete) { $words += '' }
    kubectl __complete @words 2>$null | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new(($_ -split "`t")[0])
    }
}
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH, "powershell": _POWERSHELL}


def run(context: Context, arguments: list[str]) -> int | None:
    """`completion SHELL`."""
    usage = f"\nSee '{context.path} -h' for help and examples"
    if not arguments:
        raise CLIError("Shell not specified." + usage)
    if len(arguments) > 1:
        raise CLIError("Too many arguments. Expected only the shell type." + usage)
    script = _SCRIPTS.get(arguments[0])
    if script is None:
        raise CLIError(f'Unsupported shell type "{arguments[0]}".{usage}')
    context.out(script)
    return None


def complete(argv: list[str]) -> list[str]:
    """The words that may stand at the end of a command line."""
    from pybernetes.kubectl.commands import COMMANDS
    from pybernetes.kubectl.main import GLOBAL_FLAGS, find

    *before, last = argv or [""]
    command, path, rest = find(before)
    if last.startswith("-"):
        flags = [*(command.flags if command else ()), *GLOBAL_FLAGS]
        return sorted(f"--{flag.name}" for flag in flags if f"--{flag.name}".startswith(last) and not flag.hidden)
    if command is None:
        return [f"{name}\t{text}" for name, (_, _, text) in sorted(COMMANDS.items()) if name.startswith(last)]
    if command.children and not [word for word in rest if not word.startswith("-")]:
        names = {name: load(each) if isinstance(each, str) else each for name, each in command.children.items()}
        return [f"{name}\t{each.short}" for name, each in sorted(names.items()) if name.startswith(last)]
    return _objects(command.flags, rest, last, path)


def _objects(flags: object, rest: list[str], last: str, path: list[str]) -> list[str]:
    """Resource types, then names of objects."""
    from pybernetes.kubectl.context import Context
    from pybernetes.kubectl.flags import FlagError, Flags
    from pybernetes.kubectl.main import GLOBAL_FLAGS

    parsed = Flags([*flags, *GLOBAL_FLAGS])  # type: ignore[misc]
    try:
        words = parsed.parse(rest)
    except FlagError:
        return []
    context = Context(parsed, " ".join(path), rest)
    pods_first = path[-1] in ("logs", "exec", "attach", "port-forward")
    if not words and not pods_first:
        return sorted({each.resource for each in context.mapper.all() if each.resource.startswith(last)})
    if words and pods_first:
        return []
    mapping = context.mapper.resource("pods" if pods_first else words[0].split(",")[-1])
    listed = context.client.list(mapping.path(context.namespace()), {}).get("items") or ()
    return [item["metadata"]["name"] for item in listed if item["metadata"]["name"].startswith(last)]


COMMAND = Command(
    "completion SHELL", "Output shell completion code for the specified shell (bash, zsh, fish, or powershell)", run
)
