"""The files of Kronos' web page: components, and the pages that are made of them.

``live.html`` is the page that ``kronos-api`` serves, as modules; ``replay.html`` is one file that
``kronos-replay`` writes, with the same components in it.
"""

import base64
import hashlib
import importlib.resources
import re

TYPES = {'js': 'text/javascript', 'css': 'text/css', 'svg': 'image/svg+xml'}

_IMPORT = re.compile(r"^import [^;]*? from '\./([\w.-]+)';$", re.MULTILINE)
_EXPORT = re.compile(r'^export (?=(?:async )?function |const |class )', re.MULTILINE)


def read(name: str) -> bytes:
    return importlib.resources.files(__package__).joinpath(name).read_bytes()


def served() -> dict[str, tuple[str, bytes]]:
    """Return {name: (media type, content)} of the files that a browser may request."""
    names = sorted(each.name for each in importlib.resources.files(__package__).iterdir()
                   if each.name.rpartition('.')[2] in TYPES)
    return {name: (f'{TYPES[name.rpartition(".")[2]]}; charset=utf-8', read(name))
            for name in names}


def joined(name: str) -> str:
    """Join a module with all modules that it imports into one script, because a page opened as a
    file cannot import others. No two modules define the same name."""
    found = {}

    def visit(each):
        if each not in found:
            text = read(each).decode()
            found[each] = None  # marks it as visited, so that a circle of imports ends
            for needed in _IMPORT.findall(text):
                visit(needed)
            del found[each]
            found[each] = _EXPORT.sub('', _IMPORT.sub('', text))

    visit(name)
    return "'use strict';\n" + '\n'.join(found.values())


def source_hash(text: str) -> str:
    """Return the hash that names an inline script or style in a Content-Security-Policy."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
