"""The list of commands that ``kronos-manage --help`` shows."""

import argparse
import ast
import importlib.util
import inspect
import pathlib
import re
from importlib import metadata
from typing import Any

from cliff import commandmanager
from cliff import help as cliff_help

# cliff 4.7 has no name for this type.
Point = metadata.EntryPoint | commandmanager.EntryPointWrapper
FIRST_SENTENCE = re.compile(r'.*?\.(?=\s|$)')


def lines(commands: commandmanager.CommandManager) -> list[str]:
    """Return a line for each command: its name and the first sentence of its docstring."""
    width = max(len(name) for name in commands.commands)
    return [f'  {name:<{width}}  {_sentence(point)}'
            for name, point in sorted(commands.commands.items())]


def _sentence(point: Point) -> str:
    text = ' '.join((_docstring(point) or '').split())
    found = FIRST_SENTENCE.match(text)
    return (found[0] if found else text).rstrip('.')


def _docstring(point: Point) -> str | None:
    """Read the docstring of a command from its source. The source is read because importing all
    commands would take seconds."""
    if not isinstance(point, metadata.EntryPoint):
        return inspect.getdoc(point.load())
    spec = importlib.util.find_spec(point.module)
    if spec is None or spec.origin is None:
        return None
    for node in ast.parse(pathlib.Path(spec.origin).read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.name == point.attr:
            return ast.get_docstring(node)
    return None


class Help(cliff_help.HelpCommand):
    """Show the commands, or explain one."""

    app: Any  # kronos-manage

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.cmd:
            return super().take_action(parsed_args)
        self.app.print_commands()
        return 0
