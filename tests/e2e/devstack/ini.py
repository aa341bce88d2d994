"""Change nova.conf as devstack does for a plugin: ``ini.py get|set FILE SECTION OPTION
[VALUE...]``.

Lines that are not of the option stay as they are, comments too. An option that is set many times
has as many values.
"""

import pathlib
import re
import sys


def main(action, path, section, option, *values):
    file = pathlib.Path(path)
    lines = file.read_text().splitlines() if file.exists() else []
    begin = next((number for number, line in enumerate(lines, 1) if line == f'[{section}]'), None)
    if begin is None:
        lines += [f'[{section}]']
        begin = len(lines)
    end = next((number for number in range(begin, len(lines)) if lines[number].startswith('[')),
               len(lines))
    ours = [line for line in lines[begin:end] if re.match(rf'{re.escape(option)}\s*=', line)]
    if action == 'get':
        print(*(line.partition('=')[2].strip() for line in ours))
        return
    lines[begin:end] = [*(f'{option} = {value}' for value in values),
                        *(line for line in lines[begin:end] if line not in ours)]
    file.write_text('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
