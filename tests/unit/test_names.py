"""Names of functions, classes, parameters and constants say what they are."""

import ast
import collections
import pathlib

import testtools

ROOT = pathlib.Path(__file__).parents[2] / 'kronos_nova'

FUNCTIONS = {
    # functions that are called like a word of a sentence
    'keep', 'kept', 'look', 'of', 'take', 'told', 'under_way',
    # terms that were replaced by those of the field
    'caps', 'census', 'garbage', 'lookahead', 'nothing', 'runner_up', 'things', 'worth',
    'adds_up', 'entangles', 'lets_in', 'mends', 'permits',
}
"""Names that no function has, also with a leading underscore."""
CLASSES = {'Exchanges', 'FreeReserve', 'Habits', 'Memory', 'Opaque', 'Placements', 'Sets',
           'Spacing'}
"""Names that no class has."""
PORTS = 'ports'
"""A name that no parameter, attribute or function has: there are five kinds of ports."""
MODULES = {'acting', 'announcing', 'asked', 'call', 'census', 'feed', 'habit', 'listening',
           'lookahead', 'mistyped', 'placements', 'quiet', 'reading', 'runner_up', 'servicing',
           'simulation', 'vetting'}
"""Names of modules and packages that were replaced by those of the field."""
ONE_MEANING = {'BALANCE', 'EVACUATE', 'HOT'}
"""Constants that had two meanings; each may be defined once."""


def trees():
    for path in sorted(set(ROOT.rglob('*.py')) - set(ROOT.rglob('build/**/*.py'))):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def defined(tree, kinds):
    return (node.name for node in ast.walk(tree) if isinstance(node, kinds))


def constants(tree):
    return (target.id for node in tree.body if isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name))


class NamesTest(testtools.TestCase):
    def test_a_function_is_called_by_a_verb_and_a_noun(self):
        self.assertEqual([], [
            f'{path}: {name}' for path, tree in trees()
            for name in defined(tree, (ast.FunctionDef, ast.AsyncFunctionDef))
            if name.lstrip('_') in FUNCTIONS])

    def test_a_module_is_called_by_what_is_in_it(self):
        self.assertEqual([], [path for path, _tree in trees()
                              if MODULES & {*pathlib.Path(path).with_suffix('').parts}])

    def test_a_class_has_the_term_of_the_field(self):
        self.assertEqual([], [f'{path}: {name}' for path, tree in trees()
                              for name in defined(tree, ast.ClassDef)
                              if name.lstrip('_') in CLASSES])

    def test_ports_are_called_by_what_they_serve(self):
        self.assertEqual([], [
            f'{path}:{node.lineno}' for path, tree in trees() for node in ast.walk(tree)
            if PORTS in (getattr(node, 'arg', ''), getattr(node, 'attr', ''),
                         getattr(node, 'id', ''))
            or isinstance(node, ast.FunctionDef) and node.name == PORTS])

    def test_a_constant_has_one_meaning(self):
        found = collections.Counter(name for _path, tree in trees() for name in constants(tree)
                                    if name in ONE_MEANING)
        self.assertEqual([], [name for name, count in found.items() if count > 1])
