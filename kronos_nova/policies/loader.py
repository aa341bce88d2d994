"""Loading of the policies file. An error lists all problems of the file at once."""

import functools
import os
import pathlib
import typing
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import pydantic
import yaml

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.policies import models

MAX_BYTES = 1 << 18
"""Maximum number of bytes of a policies file. Raised, a faulty file takes longer to read; lowered,
the files of large clouds are refused. Chosen because PyYAML needs 20 s of processor time for a
megabyte of short values."""

MOST_POLICIES = 100
"""Maximum number of policies in a policies file. Raised, a policies file can make each evaluation
take longer; lowered, the files of some clouds are refused. Chosen far above the number of metrics
of a host."""
MOST_PROBLEMS = 50
"""Maximum number of problems of a policies file that one error lists. Further problems are only
counted. Raised, the error can fill a screen; lowered, an operator needs more steps to correct a
file. Not measured."""

_LONGEST_NAME = 63
"""Maximum number of characters that an error quotes of a name or a key in a policies file. Raised,
messages are longer; lowered, more names are cut. Not measured."""


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses repeated keys and aliases. Aliases are refused because a small
    file with aliases can expand to an enormous document."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f'line {self.peek_event().start_mark.line + 1}: aliases are not '
                                 'supported, write the value out')
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # PyYAML's constructors raise these errors for a value that does not match its tag.
            raise yaml.YAMLError(f'line {node.start_mark.line + 1}: the value does not fit its '
                                 f'tag {node.tag}') from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _value in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.YAMLError(f'line {key_node.start_mark.line + 1}: the key {key!r} is not '
                                     'text')
            if key in seen:
                raise yaml.YAMLError(f'line {key_node.start_mark.line + 1}: the key "{key}" is '
                                     'given twice')
            seen.add(key)
        return super().construct_mapping(node, deep)


def load(path: str | os.PathLike[str]) -> models.PolicySet:
    """Read a policies file and return its content.

    :raises PolicyError: the file cannot be read, or has problems; the message has one line for each
        problem, with its place in the file
    """
    path = pathlib.Path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # reading a FIFO would block
        raise _error(path, ['is not a file'])
    try:
        with path.open('rb') as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _error(path, [f'cannot be read: {error.strerror}']) from error
    if len(content) > MAX_BYTES:
        raise _error(path, [f'is larger than {MAX_BYTES} bytes, which no policies file is'])
    return _parsed(content, os.fspath(path))


def load_for_request(path: str | os.PathLike[str]) -> models.PolicySet:
    """Read a policies file for an operator's request, and return its content. If the file cannot be
    read, the request is refused, because the rules of the file could not be applied.

    :raises PoliciesUnreadable: the file cannot be read, or has problems
    """
    try:
        return load(path)
    except exception.PolicyError as error:
        raise exception.PoliciesUnreadable(problem=error) from error


@functools.lru_cache(maxsize=2)
def _parsed(content: bytes, path: str) -> models.PolicySet:
    """Return the content of a policies file. Results are cached, because each evaluation reads the
    file and the file rarely changes."""
    return parse(content, path)


def parse(content: bytes | str,
          path: str | os.PathLike[str] = 'policies') -> models.PolicySet:
    """Return the content of a policies file from its text.

    :param path: path of the file, which is used only in messages
    :raises PolicyError: the text has problems
    """
    try:
        tree = yaml.load(content, Loader=_Loader)  # noqa: S506  # nosec B506 - a safe one
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise _error(path, [f'is not YAML: {" ".join(str(error).split())}']) from error
    if not isinstance(tree, dict):
        raise _error(path, ['must be a mapping with the key "policies"'])
    rows = tree.get('policies')
    if isinstance(rows, list) and len(rows) > MOST_POLICIES:
        raise _error(path, [f'policies: has {len(rows)} entries, more than {MOST_POLICIES}'])
    try:
        return models.PolicySet.model_validate(tree)
    except pydantic.ValidationError as error:
        # Policies with problems of their own are not counted, so that some may seem to be missing.
        found = [problem for problem in error.errors()
                 if problem['type'] != 'too_short' or not problem['input']]
        lines = [_line(problem, tree) for problem in found]
        if any(problem['loc'] for problem in found):  # the policies are not compared yet
            rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            lines += [f'policies: {line}' for line in models.contradictions(rows) if rows]
        raise _error(path, lines) from error


_A_MAPPING = 'must be a mapping, of lines "key: value"'
_IN_YAML = {'dataclass_type': _A_MAPPING, 'dict_type': _A_MAPPING, 'model_type': _A_MAPPING,
            'list_type': 'must be a list', 'tuple_type': 'must be a list',
            'string_type': 'must be a text', 'missing': 'is missing',
            'extra_forbidden': 'there is no such key',
            'too_short': 'has too few entries: at least {min_length} must be given',
            'too_long': 'has too many entries: at most {max_length} may be given',
            'bool_type': 'must be true or false', 'bool_parsing': 'must be true or false',
            **dict.fromkeys(('float_type', 'float_parsing', 'finite_number'), 'must be a number'),
            **dict.fromkeys(('int_type', 'int_parsing', 'int_from_float'),
                            'must be a whole number'),
            'literal_error': 'must be {expected}', 'greater_than': 'must be more than {gt:g}',
            'greater_than_equal': 'must be at least {ge:g}',
            'less_than': 'must be less than {lt:g}',
            'less_than_equal': 'must be at most {le:g}'}
"""{error code of pydantic: error text that uses the terms of YAML instead of Python}. The names in
braces are those of pydantic's context of the error."""
_WITH_VALUE = frozenset(_IN_YAML) - {'missing', 'extra_forbidden', 'too_short', 'too_long'}
"""Error codes of pydantic for which the error text quotes a scalar value."""


def _error(path: str | os.PathLike[str], problems: Sequence[str]) -> exception.PolicyError:
    lines = [boundary.shown(problem) for problem in problems]
    return exception.PolicyError(exception.listed(path, lines, MOST_PROBLEMS))


def _line(problem: Mapping[str, Any], tree: Any) -> str:
    """Return one line that describes a problem, such as ``policies[0] (cpu).threshold: ...``"""
    place = ''
    for part in problem['loc']:
        word = boundary.shown(part, _LONGEST_NAME)
        place += f'[{part}]' if isinstance(part, int) else f'.{word}' if place else word
        if isinstance(part, int) and isinstance(tree, list) and isinstance(tree[part], dict):
            name = tree[part].get('name', 'no name')
            place += f' ({boundary.shown(name, _LONGEST_NAME)})'
        tree = _step(tree, part)
    return f'{place or "policies"}: {_what(problem)}'


def _what(problem: Mapping[str, Any]) -> str:
    """Return a text that says what is wrong, with the wrong value and, if it can be guessed, what
    was meant."""
    kind, value = problem['type'], problem['input']
    if kind not in _IN_YAML:
        return problem['msg'].removeprefix('Value error, ')
    said = _IN_YAML[kind].format(**problem.get('ctx', {}))
    if kind == 'extra_forbidden':
        return said + exception.meant(str(problem['loc'][-1]), _keys(problem['loc'][:-1]))
    if kind not in _WITH_VALUE or not isinstance(value, (bool, int, float, str)):
        return said
    try:
        text = str(value)
    except ValueError:  # Python does not write integers of thousands of digits.
        return said
    said += f', but is {boundary.shown(text, _LONGEST_NAME)}'
    percent = _percent(kind, text.rstrip(), problem.get('ctx', {}))
    return said if percent is None else f'{said}; write {percent / 100:g} for {percent:g} %'


def _percent(kind: str, text: str, bounds: Mapping[str, Any]) -> float | None:
    """Return the percentage, up to 100, that the text of a wrong value seems to be; None if it is
    none. A percentage is a text such as ``15%``, or a number above 1 where at most 1 is permitted.
    """
    if not (kind == 'float_parsing' and text.endswith('%')
            or kind == 'less_than_equal' and bounds.get('le') == 1):
        return None
    try:
        percent = float(text.removesuffix('%'))
    except ValueError:
        return None
    return percent if 0 < percent <= 100 else None


def _keys(place: Sequence[str | int]) -> frozenset[str]:
    """Return the keys that a place of a policies file may have; none if the place has no model.

    :param place: keys and indexes that lead to the place
    """
    kind: Any = models.PolicySet
    for part in place:
        if isinstance(part, str):
            field = getattr(kind, '__pydantic_fields__', {}).get(part)
            kind = next(_models_of(field and field.annotation), None)
    return frozenset(getattr(kind, '__pydantic_fields__', {}))


def _models_of(annotation: Any) -> Iterator[type]:
    """Yield the models of mappings in an annotation, such as Policy in tuple[Policy, ...]."""
    if hasattr(annotation, '__pydantic_fields__'):
        yield annotation
    for each in typing.get_args(annotation):
        yield from _models_of(each)


def _step(tree: Any, part: str | int) -> Any:
    try:
        return tree[part]
    except (KeyError, IndexError, TypeError):
        return None
