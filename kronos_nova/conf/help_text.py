"""Help of options as oslo-config-generator needs it: one line for each paragraph.

The generator wraps each line of a help by itself. Lines that are already wrapped would break in
mid-sentence.
"""

import re
from collections.abc import Iterable

from oslo_config import cfg

_WRAPPED = re.compile(r'(?<!\n)\n(?![\n*])[ ]*')


def unwrap(options: Iterable[cfg.Opt]) -> None:
    """Give each paragraph and each item of a list a line of its own, in the help of ``options``."""
    for option in options:
        option.help = _WRAPPED.sub(' ', (option.help or '').strip()) + '\n'
