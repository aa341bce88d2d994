"""Files of the repository that are generated from the code are up to date."""

import configparser

import testtools

from tools import generate
from tools import manual


def console_scripts():
    """The programs that an installation has."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(generate.ROOT / 'setup.cfg')
    return {line.split('=')[0].strip()
            for line in parser['entry_points']['console_scripts'].strip().splitlines()}


class GeneratedTest(testtools.TestCase):
    def test_every_file_is_current(self):
        old = [str(path.relative_to(generate.ROOT)) for path, text in generate.files().items()
               if not path.exists() or path.read_text(encoding='utf-8') != text]
        self.assertEqual([], old, 'old: run "python -m tools.generate" and commit what it writes')

    def test_every_program_has_a_manual_page_and_a_page_of_the_documentation(self):
        self.assertEqual(console_scripts(), {*manual.pages()})
        for folder, suffix in (('doc/man', '.1'), ('doc/source/man', '.rst')):
            found = {path.name for path in (generate.ROOT / folder).iterdir()}
            self.assertEqual({f'{name}{suffix}' for name in console_scripts()}, found)

    def test_a_manual_page_names_every_command_and_option(self):
        page = manual.pages()['kronos-manage']
        text = manual.body(page)
        for words in ('plan approve', '--skip', '--with-stopped', 'allocations heal', '--apply',
                      '--config-file', '--format'):
            self.assertIn(words, text)
        self.assertIn('--aggregate NAME', manual.body(manual.pages()['kronos-executor']))

    def test_a_synopsis_has_the_arguments_of_all_groups_of_the_command(self):
        usage = manual.pages()['kronos-replay'].usage
        for words in ('--budget N', '--ratio <class>=<ratio>', '--add', '--lose', '--boot'):
            self.assertIn(words, usage)
        self.assertNotIn('--format', usage)

    def test_exit_codes_are_reported_by_a_section_of_their_own(self):
        self.assertEqual({0, 1, 2, 3}, {*manual.pages()['kronos-test-config'].exits})
        self.assertEqual({0, 1, 2}, {*manual.pages()['kronos-replay'].exits})
