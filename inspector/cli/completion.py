"""``puppet-inspector completion``: print what makes a shell complete the commands and their options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli import commands

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector completion bash"
SHELLS = ("bash", "zsh", "fish")
_BASH = """\
_puppet_inspector() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{first}"
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
    esac
    if [ -z "$words" ]; then
      case "$cur" in
        -*) case "${{COMP_WORDS[1]}}" in
{options}
        esac ;;
      esac
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _puppet_inspector puppet-inspector"""
_ZSH = """\
#compdef puppet-inspector
_puppet_inspector() {{
  local -a found
  if (( CURRENT == 2 )); then
    found=({first})
  else
    case "$words[2] $words[CURRENT-1]" in
{values}
    esac
    if [[ $#found -eq 0 && $words[CURRENT] == -* ]]; then
      case "$words[2]" in
{options}
      esac
    fi
  fi
  if (( $#found )); then compadd -- $found; else _files; fi
}}
compdef _puppet_inspector puppet-inspector"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def execute(arguments: argparse.Namespace) -> int:
    """Print what makes a shell complete the commands and their options; files where none fits. In ~/.bashrc or
    ~/.zshrc: `source <(puppet-inspector completion bash)`, or zsh; in ~/.config/fish/config.fish: `puppet-inspector
    completion fish | source`."""
    parsers = {name: commands.parser_of(name) for name in commands.COMMANDS}
    if arguments.shell == "fish":
        print("\n".join(_fish(parsers)))
        return 0
    general = commands.options(commands.parser_of(""))
    first = " ".join([*_first(parsers), *general])
    values, options = [], []
    for word, seconds in _first(parsers).items():
        known = {
            option: action for name in (word, *seconds) for option, action in commands.options(parsers[name]).items()
        }
        options.append((word, " ".join(known)))
        values += [(f'"{word} {option}"', _choices(action)) for option, action in known.items() if action.choices]
        words = [each.removeprefix(f"{word} ") for each in seconds] + [*map(_choices, _positionals(parsers[word]))]
        values += [(f'"{word} {word}"', " ".join(words))] if words else []
    bash = arguments.shell == "bash"
    line = '      {}) words="{}" ;;' if bash else "      {}) found=({}) ;;"
    print(
        (_BASH if bash else _ZSH).format(
            first=first,
            values="\n".join(line.format(*each) for each in values),
            options="\n".join(line.format(*each) for each in options),
        )
    )
    return 0


def _first(parsers: dict[str, argparse.ArgumentParser]) -> dict[str, list[str]]:
    """The first words of commands, with the commands of two words that begin with them."""
    return {name: [other for other in parsers if other.startswith(f"{name} ")] for name in parsers if " " not in name}


def _fish(parsers: dict[str, argparse.ArgumentParser]) -> list[str]:
    lines = []
    for name, parser in parsers.items():
        about = _quoted(commands.COMMANDS[name])
        before, _, word = name.rpartition(" ")
        where = f"'__fish_seen_subcommand_from {before}'" if before else "__fish_use_subcommand"
        lines.append(f"complete -c puppet-inspector -n {where} -f -a {word} -d {about}")
        within = f"complete -c puppet-inspector -n '__fish_seen_subcommand_from {word}'"
        for option, action in commands.options(parser).items():
            letter = "s" if len(option) == 2 else "l"
            chosen = f" -x -a {_quoted(_choices(action))}" if action.choices else " -r" if action.nargs != 0 else ""
            lines.append(f"{within} -{letter} {option.lstrip('-')}{chosen} -d {_quoted(action.help or '')}")
        lines += [f"{within} -f -a {_quoted(_choices(action))}" for action in _positionals(parser)]
    return lines


def _positionals(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Arguments that are one of several words."""
    return [action for action in parser._actions if not action.option_strings and action.choices]


def _choices(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices or ()))


def _quoted(text: str) -> str:
    """Text in single quotes, as fish reads them."""
    return "'" + text.replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'") + "'"
