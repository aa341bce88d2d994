"""The rooms of the package: an import may only point down."""

import ast
import pathlib
import re
import sys

import testtools

ROOT = pathlib.Path(__file__).parents[2] / 'kronos_nova'

# Lowest first; rooms on one floor do not know each other, but for the pairs in SIDEWAYS.
FLOORS = (
    ('exception', 'conf', 'version', 'page', 'clock', 'units', 'client'),
    ('boundary', 'extensions', 'solver_output', 'plural'),
    ('objects',),
    ('policies',),
    ('load', 'model', 'constraints', 'cooldown', 'planners', 'pacing'),
    ('room',),
    ('metrics', 'inventory', 'placement', 'claims', 'db'),
    ('cycle',),
    ('engine', 'executor', 'record'),
    ('drain',),
    ('operations',),
    ('services',),
    ('api', 'plugin'),
    ('cmd', 'osc'),
)
SIDEWAYS = {
    ('conf', 'exception'), ('load', 'model'),
    ('constraints', 'model'), ('planners', 'model'), ('pacing', 'cooldown'), ('cooldown', 'load'),
    ('claims', 'db'), ('inventory', 'placement'), ('osc', 'cmd'),
}
LOWER = {'drain.states': 'objects'}
"""Modules that lie on the floor of another room than their own: the states of drains are what
databases and events name, and need nothing."""
OURS = {'kronos_nova', 'kronos_client'}
KERNEL = (*next(rooms for rooms in FLOORS if 'model' in rooms), 'room')
KERNEL_MAY_USE = {'numpy', 'scipy', 'kronos_nova'}
CLIENT = ROOT / 'client' / 'kronos_client'
CLIENT_ROOMS = {'sanitize': set(), 'plural': set(), 'contract': {'msgspec', 'sanitize'},
                'http': {'msgspec', 'keystoneauth1', 'sanitize', 'contract'},
                'osc': {'osc_lib', 'keystoneauth1', 'contract', 'http'},
                'cli': {'cliff', 'msgspec', 'sanitize', 'plural', 'contract'}}
"""The rooms of the client, with the libraries and rooms that each may use. osc-lib brings all
libraries but msgspec."""
CLOCKS_AND_CHANCE = {'time', 'random', 'datetime', 'secrets', 'os', 'socket', 'threading',
                     'subprocess', 'pathlib'}
CONSTRAINTS = re.compile(r'group|zone|cell|isolat|tenant|reserve(?!d)|headroom|capacity|veto|'
                         r'^(used|demands|provider|(min|max)_unit|step_size)$')
ONE_HOME = {
    'nova': {'plugin'},
    'requests': {'metrics'},
    'scipy': {'model'},
    'openstack': {'inventory', 'executor', 'cmd', 'osc'},
    'alembic': {'db'},
    'falcon': {'api'},
    'sqlalchemy': {'db', 'claims'},
    'stevedore': {'extensions', 'claims', 'engine'},
}
SHARED_WORDS = {'completed', 'done', 'error', 'failed', 'finished', 'live-migration', 'migrating',
                'migration', 'running'}
"""Statuses and types of Nova's migrations that mean other things elsewhere."""
CONVERSIONS = re.compile(r'(timeutils|datetime)\.(utcnow|utcfromtimestamp)$|'
                         r'datetime\.(now|fromisoformat)$|clock\.(naive|aware)$')
TIMES = {
    'clock.py': {'now', 'fromisoformat', 'tzinfo'},
    # as the clock on a wall shows it
    'client/kronos_client/cli/arguments.py': {'now', 'fromisoformat'},
    'policies/windows.py': {'tzinfo'},      # what the clock on a wall shows
    'db/column_types.py': {'naive', 'aware'},
    'executor/broker.py': {'naive'},        # as oslo.messaging writes it
    'plugin/nova_tables.py': {'naive'},
    'plugin/nova_records.py': {'aware'},
    'plugin/history.py': {'aware'},
}
"""Modules in which times lose or get their zone, and in which the clock is read."""

NAMED_ELSEWHERE = {
    'cmd', 'osc',            # a command is called as it is typed
    'client',                # so is it there; what the rooms above have as records of their own
    'api/snapshots.py', 'record/schema.py',
}
"""Modules whose classes have the name of what they run, or of what they show or read as JSON."""


def floor_of(name):
    """The floor of a module, given from the package on, or of its room."""
    room = LOWER.get('.'.join(name.split('.')[:2]), name.split('.')[0])
    return next(level for level, rooms in enumerate(FLOORS) if room in rooms)


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix('.py')


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def names_of(path):
    """Everything that code calls by a name; texts and comments are free."""
    for node in ast.walk(ast.parse(path.read_text())):
        for field in ('id', 'attr', 'arg', 'name'):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


def conversions_of(path):
    """The calls of a module that make a time, or add or remove its zone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and CONVERSIONS.search(ast.unparse(node)):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg == 'tzinfo':
            yield node.arg


def constants_of(path):
    """All texts of a module that are no more than a word or two."""
    return {node.value for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and len(node.value) < 20}


def parsed_by(path):
    """The expressions that a module parses as JSON, as written there."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == 'json.loads':
            yield ast.unparse(node.args[0])


def modules():
    return [path for path in sorted(ROOT.rglob('*.py'))
            if path != ROOT / '__init__.py' and 'build' not in path.parts]


class LayersTest(testtools.TestCase):
    def wrong(self, is_wrong):
        return [f'{path.relative_to(ROOT)} imports {name}'
                for path in modules() for name in imports_of(path)
                if is_wrong(room_of(path), name)]

    def test_an_import_only_points_down(self):
        wrong = []
        for path in modules():
            place = '.'.join(path.relative_to(ROOT).with_suffix('').parts)
            for name in imports_of(path):
                package, _dot, rest = name.partition('.')
                if package == 'kronos_client':
                    rest = 'client'
                pair = room_of(path), rest.split('.')[0]
                if package in OURS and rest and (pair[0] != pair[1] or place in LOWER) and (
                        floor_of(rest) >= floor_of(place)) and pair not in SIDEWAYS:
                    wrong.append(f'{place} imports {name}')
        self.assertEqual([], wrong)

    def test_the_kernel_is_pure(self):
        def is_wrong(room, name):
            top = name.split('.')[0]
            if room not in KERNEL:
                return False
            is_standard = top in sys.stdlib_module_names and top not in CLOCKS_AND_CHANCE
            is_clock = name.startswith('kronos_nova.clock')
            return is_clock or not is_standard and top not in KERNEL_MAY_USE

        self.assertEqual([], self.wrong(is_wrong))

    def test_a_client_is_installed_without_the_service(self):
        found = []
        for path in sorted(CLIENT.rglob('*.py')):
            room = path.relative_to(CLIENT).parts[0].removesuffix('.py')
            used = {name.split('.')[name.startswith('kronos_client.')]
                    for name in imports_of(path)} - {*sys.stdlib_module_names, room}
            found += [(room, name) for name in used - CLIENT_ROOMS.get(room, set())]
        self.assertEqual([], found)

    def test_planners_name_no_constraint(self):
        """They ask the model: each rule is in one place."""
        found = {f'{path.name} says {name}' for path in sorted((ROOT / 'planners').glob('*.py'))
                 for name in names_of(path) if CONSTRAINTS.search(name)}
        self.assertEqual(set(), found)

    def test_all_kinds_of_rules_have_one_home(self):
        """Constraints make rules of a few kinds; none has a kind of its own."""
        homes = {str(path.relative_to(ROOT)) for path in modules()
                 for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.ClassDef)
                 and {'Rule', 'rules.Rule'} & {*map(ast.unparse, node.bases)}}
        self.assertEqual(1, len(homes), homes)

    def test_an_outside_library_has_one_home(self):
        self.assertEqual([], self.wrong(
            lambda room, name: room not in ONE_HOME.get(name.split('.')[0], {room})))

    def test_a_time_has_its_zone_wherever_it_is_not_novas(self):
        found = {str(path.relative_to(ROOT)): {*conversions_of(path)} for path in modules()
                 if 'migrations' not in path.parts}
        self.assertEqual(TIMES, {name: what for name, what in found.items() if what})

    def test_statuses_of_migrations_are_written_in_one_list(self):
        home = ROOT / 'objects' / 'migration_status.py'
        words = constants_of(home) - SHARED_WORDS
        self.assertIn('accepted', words)
        self.assertEqual({}, {str(path.relative_to(ROOT)): found for path in modules()
                              if path != home and (found := words & constants_of(path))})

    def test_a_report_of_a_cycle_is_parsed_in_one_place(self):
        found = [str(path.relative_to(ROOT)) for path in modules()
                 if 'migrations' not in path.parts for text in parsed_by(path) if 'report' in text]
        self.assertEqual([], found)

    def test_no_two_classes_have_one_name(self):
        homes = {}
        for path in modules():
            module = path.relative_to(ROOT).as_posix()
            if NAMED_ELSEWHERE.isdisjoint({module, room_of(path)}):
                for node in ast.parse(path.read_text()).body:
                    if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                        homes.setdefault(node.name, []).append(module)
        self.assertEqual({}, {name: at for name, at in homes.items() if len(at) > 1})

    def test_there_is_no_drawer_for_everything(self):
        drawers = {'utils', 'common', 'helpers', 'misc'}
        self.assertEqual([], [str(p) for p in modules() if drawers & set(p.with_suffix('').parts)])
