"""Adaptation of a recipe (an example policies file) to the labels that a Prometheus has.

The queries of a recipe take the names of hosts from the label ``instance`` by calls of
``label_replace()`` whose last arguments are :data:`RENAMED`. The adaptation changes these
arguments, the selectors of metrics, the label that identifies servers, and the windows of range
selectors. Comments and thresholds stay the same.
"""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from kronos_nova.metrics import joins
from kronos_nova.metrics.exporters import CEILOMETER
from kronos_nova.metrics.exporters import DEFAULT
from kronos_nova.metrics.exporters import LIBVIRT
from kronos_nova.metrics.exporters import NODE
from kronos_nova.metrics.exporters import Found
from kronos_nova.metrics.exporters import Naming

HOST = 'host'
PREFIXES = {NODE: 'node_', LIBVIRT: 'libvirt_', CEILOMETER: 'ceilometer_'}
"""Prefix of the names of metrics, by exporter."""

_CALL = 'label_replace('
_METRIC = re.compile(r'(?<![\w:"])((?:node|libvirt|ceilometer)_\w+)(\{[^{}]*\})?')
_BY = re.compile(r'\b(by|without|on) \(([^()]*)\)')


def _arguments(naming: Naming) -> str:
    pattern = naming.pattern.replace('\\', '\\\\')
    return f'"{HOST}", "{naming.replacement}", "{naming.label}", "{pattern}"'


RENAMED = _arguments(DEFAULT)
"""The arguments of ``label_replace()`` by which recipes name hosts."""

_RENAMING = re.compile(rf'(?P<series>.*),(?P<gap>\s*){re.escape(RENAMED)}', re.DOTALL)


def adapted(recipe: str, found: Found) -> str:
    """Return the text of a recipe, adapted to the labels and selectors that were found in
    Prometheus.

    :param recipe: YAML of a policies file that comes with Kronos
    """
    text = ''.join(_renamed(recipe, found))
    lines = [line if line.lstrip().startswith('#') else _in_line(line, found)
             for line in text.split('\n')]
    return '\n'.join(lines)


def restricted(promql: str, kind: str, selector: str) -> str:
    """Return a query in which the metrics of one exporter have an additional label matcher.

    :param kind: the exporter whose metrics get the matcher
    :param selector: the label matcher
    """
    return _METRIC.sub(
        lambda metric: _selected(metric[1], metric[2], selector)
        if metric[1].startswith(PREFIXES[kind]) else metric[0], promql)


def with_windows(text: str, windows: Mapping[str, str]) -> str:
    """Return the text of a policies file in which windows of range selectors are replaced.

    :param windows: {window: window that replaces it}, such as {'5m': '20m'}
    """
    return re.sub(r'\[(\d+[a-z]+)\]',
                  lambda window: f'[{windows.get(window[1], window[1])}]', text)


def _renamed(text: str, found: Found) -> Iterator[str]:
    """Yield the changed text of a recipe in pieces. In a recipe, calls of ``label_replace()`` with
    the arguments :data:`RENAMED` give series the names of hosts. These calls are changed to use the
    label that has the names of hosts in this Prometheus."""
    while True:
        before, call, rest = text.partition(_CALL)
        yield before
        if not call:
            return
        end = _closing(rest)
        inner, text = rest[:end], rest[end + 1:]
        renamed = _RENAMING.fullmatch(inner)
        if renamed is None:
            yield f'{_CALL}{"".join(_renamed(inner, found))})'
        else:
            yield _named(renamed['series'], renamed['gap'], _naming(inner, found))


def _closing(text: str) -> int:
    """Return the position of the closing parenthesis in ``text`` that matches the opening
    parenthesis just before ``text``."""
    depth = 1
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|[()]', text):
        depth += {'(': 1, ')': -1}.get(found[0], 0)
        if not depth:
            return found.start()
    raise ValueError('a parenthesis is not closed')


def _naming(series: str, found: Found) -> Naming:
    """Return the Naming for an expression: the source from which its series get the names of hosts.
    The first metric of the expression decides. The Naming of the exporter with this metric is
    returned, or :data:`DEFAULT` if no Naming of this exporter is known."""
    metric = _METRIC.search(series)
    for kind, prefix in PREFIXES.items():
        exporter = found.exporter(kind)
        if metric and metric[1].startswith(prefix) and exporter and exporter.naming:
            return exporter.naming
    return DEFAULT


def _named(series: str, gap: str, naming: Naming) -> str:
    """Return an expression of a recipe, changed so that the label :data:`HOST` of its series has
    the names of hosts.

    :param gap: white space before the arguments of ``label_replace()``
    """
    if not naming.is_join:
        return f'{_CALL}{series},{gap}{_arguments(naming)})'
    by_address = f'"{joins.ADDRESS}", "$1", "instance", "{joins.ADDRESS_PATTERN}"'
    return (f'({_CALL}{series},{gap}{by_address}){gap}'
            f'* on ({joins.ADDRESS}) group_left ({HOST}){gap}'
            f'max by ({joins.ADDRESS}, {HOST}) ({_CALL}{_CALL}{joins.METRIC},{gap}'
            f'{by_address}),{gap}{_arguments(naming)})))')


def _in_line(line: str, found: Found) -> str:
    """Return a line of a recipe for this cloud. Each metric gets the label matcher that selects
    the series of this cloud. The label that identifies servers is replaced by the label that was
    found in Prometheus."""
    if found.selector:
        line = _METRIC.sub(lambda metric: _selected(metric[1], metric[2], found.selector), line)
    if found.guest_label:
        line = _BY.sub(lambda by: f'{by[1]} ({_with_label(by[2], found.guest_label)})', line)
        line = re.sub(r'^(\s*vm_profile_label: ).*', rf'\g<1>{found.guest_label}', line)
        line = re.sub(r'^(\s*vm_profile_label_type: ).*', rf'\g<1>{found.guest_kind}', line)
    return line


def _selected(metric: str, matchers: str | None, selector: str) -> str:
    inside = (matchers or '{}')[1:-1]
    return f'{metric}{{{", ".join(filter(None, (inside, selector)))}}}'


def _with_label(names: str, label: str) -> str:
    """Return the label names of a ``by (...)`` clause for this cloud. Recipes identify servers by
    the labels ``domain`` and ``resource``. Both are replaced by ``label``."""
    return ', '.join(label if name in ('domain', 'resource') else name
                     for name in re.split(r',\s*', names))
