"""Writes the files of the repository that are made of the code: the samples of nova.conf's groups
and of the API's policy file, the JSON schema of the policies file, the table of the commands that
both programs have, and the manual pages.

    python -m tools.generate

tests/docs/test_generated.py fails while one of them is old.
"""

import io
import pathlib
import tempfile

from oslo_config import cfg
from oslo_config import generator as options
from oslo_policy import generator as rules

from kronos_client.contract import table
from kronos_nova.policies import schema
from tools import manual

ROOT = pathlib.Path(__file__).parents[1]
MANUAL = ROOT / 'doc/man'


def files() -> dict[pathlib.Path, str]:
    """Return {path: the content that the file should have}."""
    made = {ROOT / 'etc/kronos/samples/kronos.conf.sample': _options(),
            ROOT / 'etc/kronos/samples/kronos-policy.yaml.sample': _rules(),
            ROOT / 'etc/kronos/policies/schema.json': schema.text(),
            ROOT / 'doc/source/commands.inc': _commands()}
    return made | {MANUAL / f'{name}.1': manual.roff(page) for name, page in manual.pages().items()}


def _options() -> str:
    conf, output = cfg.ConfigOpts(), io.StringIO()
    options.register_cli_opts(conf)
    conf(['--config-file', str(ROOT / 'etc/kronos/kronos-config-generator.conf')])
    options.generate(conf, output)
    return output.getvalue()


def _commands() -> str:
    lines = ['.. list-table::', '   :header-rows: 1', '   :widths: 30 15 55', '',
             '   * - Command', '     - By default for', '     - What it does']
    for each in sorted(table.OPERATIONS, key=lambda each: each.command or ''):
        if each.command:
            lines += [f'   * - ``{each.command}``', f'     - {each.audience}s',
                      f'     - {each.summary}']
    return '\n'.join(lines) + '\n'


def _rules() -> str:
    with tempfile.NamedTemporaryFile('r', suffix='.yaml') as output:
        rules.generate_sample(
            ['--config-file', str(ROOT / 'etc/kronos/kronos-policy-generator.conf'),
             '--output-file', output.name], cfg.ConfigOpts())
        return pathlib.Path(output.name).read_text(encoding='utf-8')


if __name__ == '__main__':
    for path, text in files().items():
        path.write_text(text, encoding='utf-8')
