"""Shell completion, written from the options of every command."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from twotower.errors import UserError

BASH = """\
# {shell} completion of twotower; to use it: {use}
{head}_twotower() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=
    [[ $COMP_CWORD == 1 ]] && words="{commands}"
    case "${{COMP_WORDS[1]}} $before" in
{values}
    esac
    [[ -z $words ]] && case ${{COMP_WORDS[1]}} in
{options}
    esac
    if [[ $word == -* || $COMP_CWORD == 1 || $words != *--* ]]; then COMPREPLY=($(compgen -W "$words" -- "$word")); fi
}}
complete -o default -F _twotower twotower
"""

ZSH = """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D; }
autoload -Uz bashcompinit && bashcompinit
"""


class Completions(NamedTuple):
    """What may follow a command: its options, an option's values, and the first argument's."""

    options: dict[str, tuple[str, ...]]  # option → its values, where they are few
    arguments: tuple[str, ...]


def script(shell: str, commands: Iterable[str], options_of: Callable[[str], type]) -> str:
    """A shell's completion script, for commands that take the fields of `options_of(command)`."""
    known = {command: _completions(command, options_of) for command in commands}
    if shell == "fish":
        return _fish(known)
    if shell not in ("bash", "zsh"):
        raise UserError(f"--print-completion takes bash, zsh or fish, not {shell!r}.")
    values = [
        f'        "{command} {option}") words="{" ".join(choices)}";;'
        for command, follows in known.items()
        for option, choices in follows.options.items()
        if choices
    ]
    values += [
        f'        "{command} {command}") words="{" ".join(follows.arguments)}";;'
        for command, follows in known.items()
        if follows.arguments
    ]
    options = [f'        {command}) words="{" ".join(follows.options)}";;' for command, follows in known.items()]
    zsh = shell == "zsh"
    return BASH.format(
        shell=shell,
        use='eval "$(twotower --print-completion zsh)"' if zsh else 'eval "$(twotower --print-completion bash)"',
        head=ZSH if zsh else "",
        commands=" ".join(known),
        values="\n".join(values),
        options="\n".join(options),
    )


def _completions(command: str, options_of: Callable[[str], type]) -> Completions:
    from twotower import recipes
    from twotower.benchmarks import BENCHMARKS
    from twotower.experiments import RESULTS

    arguments = {"train": recipes.names(), "bench": list(BENCHMARKS), "reproduce": list(RESULTS)}.get(command, [])
    return Completions({"--help": (), **dict(_options(options_of(command)))}, tuple(arguments))


def _options(options: type, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """The options that tyro makes of a dataclass, and the values of those that have few."""
    for name, hint in get_type_hints(options, include_extras=True).items():
        base, *notes = get_args(hint) if hasattr(hint, "__metadata__") else (hint,)
        if dataclasses.is_dataclass(base):
            yield from _options(base, f"{prefix}{name}.")  # pyright: ignore[reportArgumentType]
        elif hint != Positional[base]:
            values = [get_args(part) for part in (base, *get_args(base)) if get_origin(part) is Literal]
            aliases = [alias for note in notes for alias in getattr(note, "aliases", None) or ()]
            for option in (f"--{prefix}{name}".replace("_", "-"), *aliases):
                yield option, tuple(map(str, values[0])) if values else ()


def _fish(known: dict[str, Completions]) -> str:
    lines = ["# fish completion of twotower; to use it: twotower --print-completion fish | source"]
    lines += [f"complete -c twotower -n __fish_use_subcommand -f -a {command}" for command in known]
    for command, follows in known.items():
        inside = f"complete -c twotower -n '__fish_seen_subcommand_from {command}'"
        lines += [f"{inside} -a '{' '.join(follows.arguments)}'"] if follows.arguments else []
        for option, values in follows.options.items():
            lines.append(f"{inside} -l {option[2:]}" + (f" -x -a '{' '.join(values)}'" if values else ""))
    return "\n".join(lines) + "\n"
