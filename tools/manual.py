"""The manual pages, made of the commands themselves.

    python -m tools.manual FOLDER       writes NAME.1 for every command

The documentation has the same text as pages of its own (the directive ``manual`` of
doc/source/conf.py).
"""

import argparse
import dataclasses
import pathlib
import re
import sys
import textwrap
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from docutils import core
from docutils.writers import manpage
from oslo_config import cfg
from oslo_log import log
from oslo_upgradecheck import upgradecheck

from kronos_client.cli.command import Command
from kronos_nova import conf as kronos_conf
from kronos_nova.cmd import executor
from kronos_nova.cmd import manage
from kronos_nova.cmd import program
from kronos_nova.cmd import record
from kronos_nova.cmd import replay
from kronos_nova.cmd import status
from kronos_nova.cmd import test_config

OUTPUT_GROUPS = re.compile('.* formatters?', re.IGNORECASE)
"""Pattern of the titles of argparse's groups that cliff adds, about how output is written. A
command itself fills the other groups."""

LONGEST_LINE = 72
"""Characters of a line of a synopsis."""

DAEMON_EXITS = {0: 'The daemon ended after a signal to end.',
                1: 'The configuration has a fault. One line on standard error names it and its '
                   'remedy.'}
NOVA_CONF = ('nova.conf of the files that Nova\'s own services read, below /etc/nova, unless '
             '--config-file names others. The options are in the documentation, under '
             '"Configuration".')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """The content of a manual page.

    options : actions of argparse
    exits : {exit code: what it means}; nothing where the description has them
    """

    name: str
    summary: str
    usage: str
    description: str
    options: list[argparse.Action]
    exits: dict[int, str] = dataclasses.field(default_factory=dict)
    rest: str = ''
    files: str = NOVA_CONF


def pages() -> dict[str, Page]:
    """Return every command that is installed, by its name."""
    found = [_manage(), _status(),
             _program('kronos-record', record.Record, 'record a cloud for kronos-replay'),
             _program('kronos-replay', replay.Replay, 'plan a recorded cloud'),
             _program('kronos-test-config', test_config.TestConfig,
                      'check whether what is configured works'),
             _daemon('kronos-api', 'answer programs over HTTP', """
                 Reports what Kronos does, and lets operators decide on plans, levels and drains,
                 over HTTP and with tokens of keystone. It listens on [kronos_api] address and
                 port."""),
             _daemon('kronos-engine', 'plan, outside nova-conductor', """
                 Plans every aggregate of [kronos] aggregates and sends out what was planned, where
                 [kronos] run_in is "daemons". Any number may run."""),
             _daemon('kronos-executor', 'carry moves out, outside nova-conductor', """
                 Carries out the moves of the aggregates named, where [kronos] run_in is "daemons".
                 Any number may run for the same aggregate: each move is done by one.""",
                     executor.CLI_OPTS),
             _daemon('kronos-exporter', 'metrics for Prometheus', """
                 Reads the control database and serves what Kronos does as metrics, on
                 [kronos_exporter] address and port. It changes nothing.""")]
    return {page.name: page for page in found}


def body(page: Page) -> str:
    """Return the sections of the page, as reStructuredText."""
    sections = [('Synopsis', _literal(page.usage)), ('Description', _escaped(page.description)),
                ('Options', _options(page.options))]
    parts = [_section(title, text) for title, text in sections]
    if page.rest:
        parts.append(page.rest)
    if page.exits:
        parts.append(_section('Exit status', '\n'.join(
            f'{code}\n    {_escaped(text)}' for code, text in page.exits.items())))
    parts.append(_section('Files', _escaped(page.files)))
    return '\n'.join(parts)


def roff(page: Page) -> str:
    """Return the page for man."""
    text = (f'{_title(page.name, "#")}\n{_title(page.summary, "*")}\n:Manual section: 1\n'
            f':Manual group: Kronos for Nova\n\n{body(page)}')
    return core.publish_string(text, writer=manpage.Writer(), settings_overrides={
        'output_encoding': 'unicode', 'report_level': 2, 'halt_level': 2})


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _manage() -> Page:
    app = manage.Manage()
    commands = sorted(metadata.entry_points(group=manage.NAMESPACE), key=lambda each: each.name)
    formats: dict[tuple[str, ...], argparse.Action] = {}
    parts = []
    for point in commands:
        parser = point.load()(app, None).get_parser(f'kronos-manage {point.name.replace("_", " ")}')
        own, others = _split(parser)
        formats |= {tuple(action.option_strings): action for action in others}
        title = point.name.replace('_', ' ')
        parts.append(f'{_title(title, "-")}\n{_literal(_usage(parser.prog, own))}\n'
                     f'{_escaped(parser.description)}\n\n{_options(own)}\n')
    rest = (f'{_title("Commands", "=")}\n' + '\n'.join(parts)
            + _section('Options of commands that print a table or an object',
                       _options(formats.values())))
    return Page(name='kronos-manage', summary='what an operator does to Kronos by hand',
                usage='kronos-manage [OPTION ...] COMMAND [ARGUMENT ...]',
                description=manage.DESCRIPTION + ' Every command has --help. "kronos-manage '
                'complete" prints the completion for bash.',
                options=app.parser._actions, rest=rest,
                exits={0: 'Done.', 1: 'Not done; standard error says why.', 2: 'Wrong arguments.',
                       3: 'What the command itself says; so for 4 and 5.'})


def _status() -> Page:
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    upgradecheck.register_cli_options(conf, status.Checks(conf))
    conf(['upgrade', 'check'], project='nova', prog='kronos-status', default_config_files=[],
         default_config_dirs=[])
    actions = []
    for action in _actions(conf):
        if isinstance(action, argparse._SubParsersAction):
            actions += [each for each in action.choices['upgrade']._actions
                        if each.option_strings and each.dest != 'help']
        else:
            actions.append(action)
    return Page(name='kronos-status', summary='whether this installation may be started again',
                usage='kronos-status [--config-file PATH] [--config-dir DIR] upgrade check '
                      '[--json]', options=actions, description="""
Checks, after an upgrade and before services are restarted, whether this Nova is one that Kronos
fits, and whether the control database is up to date. It changes nothing.""",
                exits={0: 'All is well.', 1: 'A warning.', 2: 'Something must be done first.',
                       255: 'The check itself broke.'})


def _program(name: str, command: Callable[..., Command], summary: str) -> Page:
    parser = program.parser(command, name)
    own, others = _split(parser)
    described, codes = _exits(parser.description or '')
    return Page(name=name, summary=summary, usage=_usage(name, own), description=described,
                options=[*own, *others], exits=codes)


def _daemon(name: str, summary: str, description: str, options: Sequence[cfg.Opt] = ()) -> Page:
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    kronos_conf.register_opts(conf)
    conf.register_cli_opts(options)
    conf([], project='nova', prog=name, version='', default_config_files=[],
         default_config_dirs=[])
    own = ' '.join(_form(action) for action in _actions(conf)
                   if action.dest in {option.dest for option in options}
                   and not _is_inverse(action))
    return Page(name=name, summary=summary, options=_actions(conf), exits=DAEMON_EXITS,
                usage=f'{name} [--config-file PATH] [--config-dir DIR] {own}'.strip(),
                description=textwrap.dedent(description).strip() + ' It logs to standard error, '
                'unless the configuration says otherwise; SIGTERM ends it in an orderly way.')


def _actions(conf: cfg.ConfigOpts) -> list[argparse.Action]:
    """Return the arguments of a daemon, which oslo.config gives by no public name."""
    parser: Any = conf._oparser
    return list(parser._actions)


def _split(parser: argparse.ArgumentParser) -> tuple[list[argparse.Action], list[argparse.Action]]:
    """Return the arguments of the command itself, and those that cliff adds."""
    own = [action for group in parser._action_groups
           if not OUTPUT_GROUPS.fullmatch(group.title or '') for action in group._group_actions]
    return own, [action for action in parser._actions if action not in own]


def _exits(text: str) -> tuple[str, dict[int, str]]:
    """Return a description without its sentences about exit codes, and these sentences."""
    kept, codes = [], {}
    for paragraph in text.split('\n\n'):
        if paragraph.startswith('Exit codes: '):
            rows = ' '.join(paragraph.removeprefix('Exit codes: ').rstrip('.').split()).split('; ')
            codes = {int(code): f'{sentence(text)}.' for code, text in (
                row.split(maxsplit=1) for row in rows)}
        else:
            kept.append(paragraph)
    return '\n\n'.join(kept), codes


def _usage(name: str, actions: Iterable[argparse.Action]) -> str:
    lines = [name]
    for word in (_form(action) for action in actions if action.dest != 'help'):
        if len(lines[-1]) + 1 + len(word) > LONGEST_LINE:
            lines.append('   ')
        lines[-1] += f' {word}'
    return '\n'.join(lines)


def _form(action: argparse.Action) -> str:
    """Return how it is written in a synopsis."""
    if not action.option_strings:
        many = f'[{_value(action)} ...]'
        return {'?': f'[{_value(action)}]', '*': many, '+': f'{_value(action)} {many}'}.get(
            str(action.nargs), _value(action))
    text = f'{action.option_strings[-1]} {_value(action)}'.strip()
    return text if action.required else f'[{text}]'


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ''
    if isinstance(action.metavar, tuple):
        return ' '.join(action.metavar)
    if action.metavar or not action.choices:
        return action.metavar or action.dest.upper()
    return '{' + ','.join(map(str, action.choices)) + '}'


def _is_inverse(action: argparse.Action) -> bool:
    """Return whether it is the inverse that oslo.config adds to each switch."""
    return (action.help or '').startswith('The inverse of')


def _options(actions: Iterable[argparse.Action]) -> str:
    rows = []
    for action in actions:
        if action.help == argparse.SUPPRESS or _is_inverse(action) or action.dest == 'help':
            continue
        names = ', '.join(action.option_strings) or _value(action)
        value = _value(action) if action.option_strings else ''
        if not action.help:
            raise ValueError(f'the argument {names} has no help')
        text = ' '.join((action.help % vars(action)).split())
        rows.append(f'``{names} {value}'.strip() + f'``\n    {_escaped(text)}\n')
    return '\n'.join(rows)


def _section(title: str, text: str) -> str:
    return f'{_title(title, "=")}\n{text}\n'


def _title(text: str, line: str) -> str:
    return f'{text}\n{line * len(text)}\n'


def _literal(text: str) -> str:
    return f'::\n\n{textwrap.indent(text, "    ")}\n'


def _escaped(text: str) -> str:
    """Return the text of a command with everything escaped that is markup."""
    return re.sub(r'([\\*`|_])', r'\\\1', text.strip())


def main(folder: str) -> None:
    for name, page in pages().items():
        (pathlib.Path(folder) / f'{name}.1').write_text(roff(page), encoding='utf-8')


if __name__ == '__main__':
    main(sys.argv[1])
