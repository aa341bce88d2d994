"""Writes oslo.config files."""


def write(path, *layers):
    """Sections of options; a later layer adds to the sections before it and overrides options.

    A list gives its option several times, None leaves it out.
    """
    merged = {}
    for layer in layers:
        for section, options in layer.items():
            merged.setdefault(section, {}).update(options)
    lines = []
    for section, options in merged.items():
        lines.append(f'[{section}]')
        for name, value in options.items():
            values = value if isinstance(value, list) else [value]
            lines += [f'{name} = {item}' for item in values if item is not None]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join([*lines, '']))
    return path
