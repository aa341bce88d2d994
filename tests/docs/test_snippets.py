"""The documentation's configuration and commands work as written."""

import collections
import functools
import importlib.metadata
import pathlib
import re
import shlex

import fixtures
import testtools
import yaml
from keystoneauth1 import loading
from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import unknown_options
from kronos_nova.policies import loader
from tools import generate
from tools import manual

PAGES = (generate.ROOT / 'README.rst', *sorted((generate.ROOT / 'doc/source').glob('*.rst')))

OTHERS = {'Service', 'nova-base-plugin-kronos'}
"""Groups of files that are no nova.conf: a unit of systemd, and kolla-build.conf."""

OPTIONS_OF = ('nova.conf', 'oslo.log', 'oslo.messaging', 'oslo.middleware',
              'keystonemiddleware.auth_token')
"""Names under which libraries tell oslo-config-generator of their options."""

GROUP = re.compile(r'^\[([\w-]+)\]$', re.MULTILINE)
DIRECTIVE = re.compile(r'( *)\.\. code-block:: *(\w+)$')
NAMESPACES = {'kronos-manage': 'kronos_nova.manage',
              'openstack kronos': 'openstack.rebalancing.v1'}
PROMPT = re.compile(r'(?:\$|#) (?=\S)')
INLINE = re.compile(r'``((?:kronos-\w[\w-]*|openstack kronos)(?: [^`]+)?)``')

OPTION = re.compile(r'--[a-z][a-z-]*')
PACKAGE = 'kronos-nova'

Block = collections.namedtuple('Block', 'where language text')


def blocks(path):
    """Every literal block of a page; ``language`` is '' where none is named."""
    lines = path.read_text(encoding='utf-8').splitlines()
    for number, line in enumerate(lines):
        named = DIRECTIVE.match(line)
        if named or (line.endswith('::') and not line.lstrip().startswith('.. ')):
            indent = len(line) - len(line.lstrip())
            yield Block(f'{path.name}:{number + 1}', named[2] if named else '',
                        _inside(lines[number + 1:], indent))


def _inside(lines, indent):
    found = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line)
    margin = min((len(line) - len(line.lstrip()) for line in found if line.strip()), default=0)
    return '\n'.join(line[margin:] for line in found).strip()


ALL = [block for path in PAGES for block in blocks(path)]


def known_options():
    """{group: {name: option}} of Nova, its libraries, and Kronos."""
    found = collections.defaultdict(dict)
    points = {each.name: each for each in importlib.metadata.entry_points(group='oslo.config.opts')}
    for name in OPTIONS_OF:
        for group, options in points[name].load()():
            found[getattr(group, 'name', group) or 'DEFAULT'].update(
                (option.dest, option) for option in options)
    for group, options in kronos_conf.list_opts():
        found[group.name].update((option.dest, option) for option in options)
    signing_in = (*loading.get_auth_common_conf_options(),
                  *loading.get_auth_plugin_conf_options('password'))
    for group in ('keystone_authtoken', 'kronos_nova'):
        found[group].update((option.dest, option) for option in signing_in)
    return found


class ConfigurationTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.options = known_options()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'nova.conf'

    def problems(self, text):
        """The errors of a piece of nova.conf; ``...`` stands for what is left out, and a name
        for what a template puts in."""
        self.path.write_text(re.sub(r'{{.*?}}', 'name', '\n'.join(
            line for line in text.splitlines() if line.strip() != '...')) + '\n')
        conf = cfg.ConfigOpts()
        kronos_conf.register_opts(conf)
        conf([f'--config-file={self.path}'], project='nova')
        yield from unknown_options.unknown_keys(conf)
        logins = {conf.kronos_prometheus.auth_section: self.options['kronos_nova']}
        for group, values in unknown_options.sections(conf).items():
            for key in values:
                option = (logins.get(group) or self.options.get(group, {})).get(key)
                if option is None:
                    yield f'[{group}] {key}: there is no such option'
                else:
                    yield from self.refused(group, option)

    def refused(self, group, option):
        conf = cfg.ConfigOpts()
        conf.register_opt(option, group=None if group == 'DEFAULT' else group)
        conf([f'--config-file={self.path}'], project='nova')
        try:
            value = conf[option.dest] if group == 'DEFAULT' else conf[group][option.dest]
        except (cfg.Error, ValueError) as error:
            yield str(error)
            return
        # oslo.config takes what stands behind a value for a part of it.
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and re.search(r'\s[#;]', each):
                yield f'[{group}] {option.dest}: there is a comment in its value'

    def test_every_piece_of_nova_conf_is_taken(self):
        found = [block for block in ALL if block.language in ('ini', '')
                 and GROUP.search(block.text) and not OTHERS & {*GROUP.findall(block.text)}]
        self.assertLess(10, len(found))
        self.assertEqual([], [(block.where, problem) for block in found
                              for problem in self.problems(block.text)])

    def test_a_piece_that_is_wrong_is_seen(self):
        for text, said in (('[kronos]\naggregate = a', 'no such option'),
                           ('[kronos_api]\nport = many', 'port'),
                           ('[oslo_messaging_notifications]\ndriver = kronos  # mine', 'comment'),
                           ('[filter_scheduler]\nenabled = x', 'no such option')):
            self.assertIn(said, str([*self.problems(text)]))

    def test_every_override_of_openstack_ansible_is_taken(self):
        [block] = [each for each in ALL if 'nova_nova_conf_overrides' in each.text
                   and each.language == 'yaml']
        groups = yaml.safe_load(block.text)['nova_nova_conf_overrides']
        lines = []
        for group, values in groups.items():
            lines.append(f'[{group}]')
            for key, value in values.items():
                # A mapping without values is how its template gets a key several times.
                lines += [f'{key} = {each}' for each in
                          (value if isinstance(value, dict) else [value])]
        self.assertEqual([], [*self.problems('\n'.join(lines))])
        self.assertIn('driver = kronos', lines)

    def test_every_setting_of_puppet_is_taken(self):
        [block] = [each for each in ALL if each.language == 'puppet']
        found = re.findall(r"^ *'(\w+)/(\w+)': *value => (?:'([^']*)'|\$\w+)", block.text,
                           re.MULTILINE)
        self.assertLess(4, len(found))
        self.assertEqual([], [problem for group, key, value in found for problem in
                              self.problems(f'[{group}]\n{key} = {value or "x"}')])

    def test_every_piece_of_yaml_can_be_read(self):
        found = [each for each in ALL if each.language == 'yaml']
        self.assertLess(3, len(found))
        for block in found:
            content = yaml.safe_load(block.text)
            self.assertIsInstance(content, dict, block.where)
            if 'policies' in content:
                self.path.write_text(block.text)
                self.assertNotEqual([], loader.load(str(self.path)), block.where)


class AnsibleTest(testtools.TestCase):
    def test_each_playbook_of_the_documentation_has_plays_and_finds_its_tasks(self):
        shown = re.findall(r'ansible-playbook [^`\n]*?([\w-]+\.yaml)',
                           (generate.ROOT / 'doc/source/maintenance.rst').read_text())
        folder = generate.ROOT / 'etc/ansible'
        shipped = [folder / name for name in {*shown, 'maintenance.yaml'}
                   if (folder / name).exists()]
        self.assertEqual(['hook.yaml', 'maintenance.yaml'], sorted(path.name for path in shipped))
        for path in shipped:
            for play in yaml.safe_load(path.read_text()):
                self.assertIn('hosts', play)
                self.assertNotEqual([], play['tasks'])
        [hook] = yaml.safe_load((folder / 'hook.yaml').read_text())
        [task] = hook['tasks']
        self.assertTrue((folder / task['ansible.builtin.import_tasks']).exists())


class CommandsTest(testtools.TestCase):
    """Commands, their options, and programs that a page tells to type."""

    def setUp(self):
        super().setUp()
        self.commands = {program: {
            point.name.replace('_', ' ').removeprefix('kronos ') if program != 'kronos-manage'
            else point.name.replace('_', ' '): point
            for point in importlib.metadata.entry_points(group=namespace)}
            for program, namespace in NAMESPACES.items()}
        self.manuals = {name: manual.body(page) for name, page in manual.pages().items()}

    def problems(self, line):
        words = [word for word in _words(line) if word not in ('|', '...')]
        program = 'openstack kronos' if words[:2] == ['openstack', 'kronos'] else words[0]
        rest = words[len(program.split()):]
        if program not in NAMESPACES:
            if program not in self.manuals:
                yield f'{program}: there is no such program'
                return
            yield from (f'{program}: no option {each}' for each in _options(rest)
                        if each not in OPTION.findall(self.manuals[program]))
            return
        rest = _without_files(rest)
        commands = self.commands[program]
        name = next((' '.join(rest[:count]) for count in (3, 2, 1)
                     if ' '.join(rest[:count]) in commands), None)
        if name is not None:
            known = _options_of(commands[name], f'{program} {name}')
            yield from (f'{program} {name}: no option {each}' for each in _options(rest)
                        if each not in known)
        elif rest and not any(each.startswith(' '.join(rest)) for each in commands):
            yield f'{program}: no command "{" ".join(rest)}"'

    def test_every_documented_command_exists_with_its_options(self):
        found = [(path.name, line) for path in PAGES for line in reported(path)]
        self.assertLess(100, len(found))
        self.assertEqual([], [(where, problem) for where, line in found
                              for problem in self.problems(line)])

    def test_one_that_is_wrong_is_seen(self):
        for line in ('kronos-manage plan permit 1', 'kronos-manage plan approve 1 --skipp 2',
                     'kronos-reply x', 'kronos-replay x --htm y', 'openstack kronos host drian'):
            self.assertNotEqual([], [*self.problems(line)], line)


def reported(path):
    """Command lines of a page: those behind a prompt, and those within the text."""
    for block in blocks(path):
        if block.language in ('console', ''):
            for line in re.sub(r' *\\\n[> ]*', ' ', block.text).splitlines():
                typed = PROMPT.match(line)
                words = _words(line[typed.end():]) if typed else []
                for at, word in enumerate(words):
                    if _is_ours(words, at):
                        yield shlex.join([pathlib.Path(word).name, *words[at + 1:]])
                        break
    text = ' '.join(path.read_text(encoding='utf-8').split())
    yield from (found[1] for found in INLINE.finditer(text)
                if not found[1].endswith('.service') and found[1] != PACKAGE)


def _is_ours(words, at):
    name = pathlib.Path(words[at]).name
    return (name in manual.pages() and words[at - 1] not in ('enable', '--now')
            or words[at:at + 2] == ['openstack', 'kronos'])


def _words(line):
    """The words of a command, up to where a shell would end it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    found = []
    for word in lexer:
        if word and set(word) <= set('|&;><()'):
            break
        found.append(word)
    return found


def _options(words):
    return [word.partition('=')[0] for word in words if word.startswith('--')]


def _without_files(words):
    """A command without the options that stand before it."""
    while words and words[0].startswith('--config-'):
        words = words[1 if '=' in words[0] else 2:]
    return words


@functools.cache
def _options_of(point, name):
    return {option for action in point.load()(None, None).get_parser(name)._actions
            for option in action.option_strings}
