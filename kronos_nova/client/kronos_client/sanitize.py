"""Foreign text, made fit for logs, reports, terminals and databases."""

import re
import unicodedata

SHOWN_CHARACTERS = 300
"""Maximum number of characters of a foreign text in a message. Raised, one answer can fill a page
of a log; lowered, causes are cut. Chosen as two lines of a log."""

# Unicode categories: Cc are control characters such as ESC, Cf include changes of the writing
# direction, Zl and Zp end lines, Cs and Cn have no printable form.
_UNPRINTABLE = ('Cc', 'Cf', 'Zl', 'Zp', 'Cs', 'Cn')
BEYOND = re.compile('[\U00010000-\U0010ffff]')
"""Characters that utf8mb3 of MariaDB and MySQL does not have."""


def shown(foreign: object, most: int = SHOWN_CHARACTERS) -> str:
    """Return ``foreign`` as one line for logs, reports and terminals.

    Characters that would end the line, move the cursor or turn the text are replaced by U+FFFD; a
    text longer than ``most`` is cut.
    """
    text = str(foreign)
    cut = text[:most]
    if not (cut.isascii() and cut.isprintable()):
        cut = ''.join('\N{REPLACEMENT CHARACTER}'
                      if unicodedata.category(character) in _UNPRINTABLE else character
                      for character in cut)
    return cut + (f'... ({len(text)} characters)' if len(text) > most else '')


def remark(foreign: object, most: int = SHOWN_CHARACTERS) -> str:
    """Make a text printable like :func:`shown`, for a database.

    Characters that utf8mb3 does not have are replaced by U+FFFD.
    """
    return BEYOND.sub('\N{REPLACEMENT CHARACTER}', shown(foreign, most))
