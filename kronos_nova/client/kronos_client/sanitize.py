"""Functions that make text from other programs safe for logs, reports, terminals and databases."""

import re
import unicodedata

SHOWN_CHARACTERS = 300
"""Maximum number of characters that a message quotes from a text of another program. Raised, one
text can fill a page of a log; lowered, the cause of an error may be cut off. Chosen as two lines of
a log."""

# Unicode categories: Cc are control characters such as ESC, Cf include changes of the writing
# direction, Zl and Zp end lines, Cs and Cn have no printable form.
_UNPRINTABLE = ('Cc', 'Cf', 'Zl', 'Zp', 'Cs', 'Cn')
BEYOND = re.compile('[\U00010000-\U0010ffff]')
"""Pattern of characters that the encoding utf8mb3 of MariaDB and MySQL cannot represent."""


def shown(foreign: object, most: int = SHOWN_CHARACTERS) -> str:
    """Return text from another program as one line that is safe in logs, reports and terminals.

    Each character that would end the line, move the cursor or change the direction of writing is
    replaced by U+FFFD. A text longer than ``most`` characters is cut.
    """
    text = str(foreign)
    cut = text[:most]
    if not (cut.isascii() and cut.isprintable()):
        cut = ''.join('\N{REPLACEMENT CHARACTER}'
                      if unicodedata.category(character) in _UNPRINTABLE else character
                      for character in cut)
    return cut + (f'... ({len(text)} characters)' if len(text) > most else '')


def remark(foreign: object, most: int = SHOWN_CHARACTERS) -> str:
    """Return text from another program as one line that any column of a database can store.

    The text is first made safe and cut by :func:`shown`. Then each character that the encoding
    utf8mb3 cannot represent is replaced by U+FFFD.
    """
    return BEYOND.sub('\N{REPLACEMENT CHARACTER}', shown(foreign, most))
