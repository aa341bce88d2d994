"""Turns something valid into something that is nearly valid."""

import copy
import json

NASTY = (
    None, True, False, 0, -1, 1, 2 ** 31, 2 ** 53, 2 ** 63, 2 ** 64, -2 ** 63, 10 ** 400, 0.5, -0.0,
    1e308, 1e-320, float('nan'), float('inf'), float('-inf'), '', ' ', '0', 'NaN', '+Inf', '-1',
    '1e999', 'x' * 300, 'x' * 70_000, '\x1b[2J\x1b[31m', 'a\r\nCRITICAL forged', '[/x]',
    '[link=x]y', '\u202e', '\ud800', '\x00', '../../etc/passwd', '%s%n', '{0}', '_unassigned_',
    'kronos:move', [], {}, [[]], {'': ''}, [None] * 100)
"""Values that code tends not to expect where another one was."""

TOKENS = (b'&a ', b'*a', b'<<: *a', b'!!python/object:os.system', b'\t', b'- ', b': ', b'[' * 2000,
          b'{' * 500, b'"', b"'", b'|', b'>', b'\x00', b'\xff\xfe', b'\x1b[2J', b'1e999', b'.nan',
          b'.inf', b'2026-02-31', b'0x7fffffffffffffff', b'9' * 5000, b'\xc2\x85', b'---\n', b'%',
          b'~', b'null', b'a' * 10_000, b'\n' * 1000)


def tree(rng, value, most=3):
    """A copy of a JSON value with one to ``most`` of its nodes replaced, removed or repeated."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, most)):
        places = list(_places(value))
        if not places:
            return rng.choice(NASTY)
        parent, key = rng.choice(places)
        _change(rng, parent, key)
    return value


def _places(value):
    if not isinstance(value, dict | list):
        return
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _change(rng, parent, key):
    kind = rng.randrange(10)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.extend(copy.deepcopy(parent[key]) for _ in range(rng.choice((1, 50))))
    elif kind == 2 and isinstance(parent, dict):
        parent[rng.choice(('', 'x', '\x1b', 'y' * 300, 'uuid'))] = parent.pop(key)
    elif kind == 3:
        deep = value = []
        for _ in range(rng.choice((5, 50, 100))):
            value.append([])
            value = value[0]
        parent[key] = deep
    elif kind == 4 and isinstance(parent[key], str):
        parent[key] += rng.choice(('\x1b[0m', '\n', '[/]', '\u2028', '$1', '\\', '"'))
    elif kind == 5 and isinstance(parent[key], int | float):
        parent[key] = rng.choice((-1, 1e9, 10 ** 18, 1e-9)) * (parent[key] or 1)
    elif kind == 6 and isinstance(parent[key], list):
        rng.shuffle(parent[key])
    else:
        parent[key] = copy.deepcopy(rng.choice(NASTY))


def text(rng, content, most=4):
    """A copy of some bytes with pieces changed, removed, repeated or put in."""
    content = bytearray(content)
    for _ in range(rng.randint(1, most)):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            del content[at:at + rng.choice((1, 10, 1000))]
        elif kind == 1:
            content[at:at] = rng.choice(TOKENS)
        elif kind == 2 and content:
            content[at % len(content)] = rng.randrange(256)
        elif kind == 3:
            content[at:at] = content[at:at + 200] * rng.choice((1, 30))
        else:
            del content[at:]
    return bytes(content)


def encoded(value):
    """JSON with everything that Python can put there, lone surrogates among it."""
    return json.dumps(value).encode()
