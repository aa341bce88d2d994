"""Conversion of the help of options into the form that oslo-config-generator needs: one line for
each paragraph.

The generator wraps each line of a help separately. So lines that are already wrapped would get
extra breaks inside sentences.
"""

import re
from collections.abc import Iterable

from oslo_config import cfg

_WRAPPED = re.compile(r'(?<!\n)\n(?![\n*])[ ]*')


def unwrap(options: Iterable[cfg.Opt]) -> None:
    """Join the lines of each paragraph and of each list item in the help of ``options``, in
    place."""
    for option in options:
        option.help = _WRAPPED.sub(' ', (option.help or '').strip()) + '\n'
