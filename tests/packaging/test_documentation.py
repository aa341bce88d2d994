"""The theme of the documentation leads nowhere: neither fonts, nor log-ins, nor anybody's menus."""

import pathlib
import re
import subprocess
import sys
import tempfile

import testtools

ROOT = pathlib.Path(__file__).parents[2]
REACHES = re.compile(r'(?:href|src|action)="((?:https?:)?//[^"]*)"|url\((https?:[^)]*)\)')


class ThemeTest(testtools.TestCase):
    def built(self, configuration):
        """The pages of a documentation that says nothing itself."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        source, target = pathlib.Path(folder, 'source'), pathlib.Path(folder, 'html')
        source.mkdir()
        (source / 'index.rst').write_text('Title\n=====\n\n.. toctree::\n\n   more\n')
        (source / 'more.rst').write_text('More\n====\n\nText.\n')
        subprocess.run([sys.executable, '-m', 'sphinx', '-W', '-q', '-b', 'html', '-c',
                        configuration, source, target], check=True, cwd=ROOT, timeout=300)
        return target

    def test_no_page_reaches_out(self):
        for configuration in ('doc/source', 'releasenotes/source'):
            found = [address for path in self.built(ROOT / configuration).rglob('*')
                     if path.suffix in ('.html', '.css')
                     for address in REACHES.findall(path.read_text())]
            self.assertEqual([], found)
