"""Commands that are separate programs, such as ``kronos-record``, and not commands of
kronos-manage.

Such a program is also written as a cliff command. So it has the options, output formats and exit
codes of the commands of kronos-manage.
"""

import argparse
import logging
import sys
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from rich.console import Console

from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_client.cli.command import Command
from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.cmd import manage

FAILED, USAGE = 1, 2
"""Exit codes of all programs. ``FAILED``: an error occurred. ``USAGE``: the arguments are wrong.
Fixed: scripts depend on the codes, and argparse uses 2 for wrong arguments."""

LONGEST = 2000
"""Maximum number of characters in one line of an error message. A longer line is cut, because some
errors quote files of any size. Raised, one line can fill a screen; lowered, the cause of an error
may be cut off. Not measured."""


class Program:
    """An object that a command gets in place of the cliff application, if the command is run as a
    program of its own. ``options`` are the parsed arguments."""

    interactive_mode = False

    def __init__(self, options: argparse.Namespace | None):
        self.options = options
        self.stdout = sys.stdout


class Refused(Exception):  # noqa: N818 - ends a program, as SystemExit does
    """The exception that ends a program with a message and a chosen exit code. All other errors of
    Kronos end a program with exit code 1."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


def parser(command: Callable[..., Command], name: str) -> argparse.ArgumentParser:
    """Make the parser of a program's command line.

    :param command: a cliff command's class
    :returns: an argparse.ArgumentParser
    """
    made = command(Program(None), None).get_parser(name)
    made.add_argument('--version', action='version',
                      version=f'{name} {manage.version_string()}',
                      help='Show the version and exit.')
    made.add_argument('--debug', action='store_true',
                      help='Log debug messages, those of libraries included, to stderr.')
    return made


def run(command: Callable[..., Command], name: str, argv: list[str] | None = None) -> int:
    """Run a command as a program. Wrong arguments end the process with exit code 2.

    :param command: a cliff command's class
    :returns: the exit code of the command; 1 if the command failed
    """
    options = parser(command, name).parse_args(argv)
    _configure_logging(options.debug)
    try:
        code = command(Program(options), None).run(options)
        sys.stdout.flush()
        return code
    except Refused as refused:
        return say(refused, refused.code)
    except BrokenPipeError:
        raise   # The output is not read to its end, which is no failure of the command.
    except (exception.KronosException, cfg.Error, OSError) as error:
        if options.debug and isinstance(error, OSError):
            raise
        return say(error, FAILED)


def say(error: Exception, code: int) -> int:
    """Print an error to stderr, and return ``code``."""
    for line in str(error).split('\n'):
        print(boundary.shown(line, LONGEST), file=sys.stderr)
    return code


def _configure_logging(is_debugging: bool) -> None:
    logging.basicConfig(level=logging.DEBUG if is_debugging else logging.WARNING,
                        format='%(message)s')
    if not is_debugging:
        # What cannot be loaded is reported by the error that follows.
        logging.getLogger('stevedore').setLevel(logging.CRITICAL)


class _Console(Console):
    """A console that leaves it to the program to end if the output is not read to its end."""

    def on_broken_pipe(self) -> None:
        raise   # noqa: PLE0704 - called while the error is handled


def console(app: Any, width: int = 0) -> Console:
    """Return a rich console that prints tables to a command's output.

    :param width: number of characters in a line. With 0, lines are as wide as the terminal; if the
        output is no terminal, their length is not limited
    """
    return _Console(file=app.stdout, width=width or (
        None if app.stdout.isatty() else columns.WIDE))


class Report(command.ShowOne):
    """A command whose result is one object. For people, the object is printed as several tables.

    ``take_action`` returns names and values, as in any ShowOne. The method may set ``code``, which
    is the exit code.
    """

    code = 0

    def print_tables(self, console: Console, data: dict[str, Any]) -> None:
        """Print the result as tables for people.

        :param console: a Console of rich
        :param data: {name: value}
        """
        raise NotImplementedError

    def run(self, parsed_args: argparse.Namespace) -> int:
        return super().run(parsed_args) or self.code

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str],
                       data: Sequence[Any]) -> int:
        if parsed_args.formatter != 'table' or parsed_args.columns:
            return super().produce_output(parsed_args, column_names, data)
        self.print_tables(console(self.app, parsed_args.max_width),
                          dict(zip(column_names, data, strict=True)))
        return 0
