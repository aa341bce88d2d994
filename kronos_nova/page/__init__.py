"""The files of the web page of Kronos: JavaScript modules with its components, and the two pages
that use them.

``live.html`` is the page that ``kronos-api`` serves; it loads the modules. ``replay.html`` is the
template of the single file that ``kronos-replay`` writes, with the same components inside it.
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
    """Return {name of file: (media type, content)} of the files that a browser may request from
    ``kronos-api``."""
    names = sorted(each.name for each in importlib.resources.files(__package__).iterdir()
                   if each.name.rpartition('.')[2] in TYPES)
    return {name: (f'{TYPES[name.rpartition(".")[2]]}; charset=utf-8', read(name))
            for name in names}


def joined(name: str) -> str:
    """Join a module with all modules that it imports, and return the script. A page that is opened
    as a file cannot import modules. No two modules may define the same name."""
    found: dict[str, str] = {}

    def visit(each: str) -> None:
        if each not in found:
            text = read(each).decode()
            found[each] = ''  # mark it as visited, so that a circle of imports ends
            for needed in _IMPORT.findall(text):
                visit(needed)
            del found[each]
            found[each] = _EXPORT.sub('', _IMPORT.sub('', text))

    visit(name)
    return "'use strict';\n" + '\n'.join(found.values())


def source_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy permits an inline script or style.

    :param text: content of the script or style element
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
