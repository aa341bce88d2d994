"""The machine reassignment problem: its costs and constraints by hand, its files, and the search.
"""

import argparse
import dataclasses
import pathlib

import ddt
import fixtures
import numpy as np
import testtools

from bench import roadef
from bench.roadef import evaluator
from bench.roadef import reader
from bench.roadef import search
from kronos_nova.planners.base import Limits

MODEL = """2
0 1
1 2
3
0 0 10 10 6 5 0 3 5
0 1 10 10 8 8 3 0 4
1 1 10 10 8 8 5 4 0
3
2 0
0 1 0
0 0
5
0 3 3 7
0 1 1 2
1 2 2 1
2 4 4 4
2 2 5 3
1
0 1 2
3
1 10 100
"""
"""Two resources, of which the second is transient; three machines in two neighborhoods and two
locations; three services, of which the first needs two locations, and the second needs the first;
five processes; one balance cost."""
ASSIGNMENT = '0 1 0 0 2'


class Files(fixtures.Fixture):
    """A directory with a model and an assignment."""

    def __init__(self, model=MODEL, assignment=ASSIGNMENT):
        self._texts = {'model_x_1.txt': model, 'assignment_x_1.txt': assignment}

    def _setUp(self):
        # Below a directory of its own: the one of temporary files changes while it is read.
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'instance')
        self.path.mkdir()
        self.model = self.path / 'model_x_1.txt'
        for name, text in self._texts.items():
            if text is not None:
                self.path.joinpath(name).write_text(text)


@ddt.ddt
class EvaluatorTest(testtools.TestCase):
    def verdict(self, *assignment):
        return evaluator.evaluate(reader.read(self.useFixture(Files()).model), list(assignment))

    def test_the_costs_of_the_original_assignment(self):
        found = self.verdict(0, 1, 0, 0, 2)
        # The first machine is used 3 above its safety capacity of the first resource, and 4 above
        # that of the second, which counts twice. For 1, 9 and 8 free units of the first resource,
        # 2, 18 and 16 of the second should be free; 1, 9 and 5 are.
        self.assertEqual({'load': 3 + 2 * 4, 'balance': 3 * (1 + 9 + 11), 'process moves': 0,
                          'service moves': 0, 'machine moves': 0}, found.costs)
        self.assertEqual((74, 0), (found.objective, found.violated))

    def test_the_costs_of_moves(self):
        found = self.verdict(0, 1, 0, 1, 0)
        # Both moved processes are of one service.
        self.assertEqual((4 + 3, 10 * 2, 100 * (3 + 5)), tuple(
            found.costs[f'{what} moves'] for what in ('process', 'service', 'machine')))
        self.assertEqual(self.verdict(0, 1, 0, 1, 2).costs['service moves'], 10)

    @ddt.data(
        # The second resource of the first machine is used completely, and still by a process that
        # has left it.
        ('capacity', (0, 1, 0, 1, 0)),
        ('conflict', (0, 1, 0, 2, 2)),
        ('spread', (2, 1, 0, 0, 2)),
        ('dependency', (0, 1, 2, 0, 2)))
    @ddt.unpack
    def test_each_constraint_is_violated_alone(self, kind, assignment):
        found = self.verdict(*assignment)
        self.assertEqual({**dict.fromkeys(found.violations, 0), kind: 1}, found.violations)

    def test_a_move_that_violates_nothing(self):
        found = self.verdict(0, 1, 0, 1, 2)
        self.assertEqual((63 + 4 + 10 + 300, 0), (found.objective, found.violated))


@ddt.ddt
class ReaderTest(testtools.TestCase):
    def test_all_fields_are_read(self):
        found = reader.read(self.useFixture(Files()).model)
        self.assertEqual([False, True], found.transient.tolist())
        self.assertEqual([[6, 5], [8, 8], [8, 8]], found.safety.tolist())
        self.assertEqual([[0, 3, 5], [3, 0, 4], [5, 4, 0]], found.machine_costs.tolist())
        self.assertEqual(((), (0,), ()), found.dependencies)
        self.assertEqual((reader.Balance(0, 1, 2, 3),), found.balances)
        self.assertEqual(('x_1', None), (found.name, found.lower_bound))

    def test_a_lower_bound_is_read_if_there_is_one(self):
        files = self.useFixture(Files())
        files.path.joinpath('lb_x_1.txt').write_text('17\n')
        self.assertEqual(17, reader.read(files.model).lower_bound)

    def test_models_are_found_by_any_of_their_names(self):
        files = self.useFixture(Files())
        for path in (files.model, files.path / 'assignment_x_1.txt', files.path,
                     files.path.parent):
            self.assertIn(files.model, reader.find([path]))
        self.assertEqual([files.model], reader.find([files.path, files.model]))

    @ddt.data(
        (MODEL, None, 'assignment_x_1.txt: the file cannot be read'),
        (None, ASSIGNMENT, 'model_x_1.txt: the file cannot be read'),
        (MODEL[:40], ASSIGNMENT, 'model_x_1.txt: the file ends after'),
        (MODEL + '1', ASSIGNMENT, 'model_x_1.txt: the file has 71 integers instead of 70'),
        (MODEL.replace('0 1 0\n', '0 1 3\n'), ASSIGNMENT, 'model_x_1.txt: integer 39 is 3'),
        (MODEL.replace('2 2 5 3', '3 2 5 3'), ASSIGNMENT, 'model_x_1.txt: a process has service'),
        (MODEL, '0 1 0 0', 'assignment_x_1.txt: the file ends after 4'),
        (MODEL, '0 1 0 0 3', 'assignment_x_1.txt: integer 5 is 3'),
        (MODEL, '0 1 0 0 2 2', 'assignment_x_1.txt: the file has 6 integers'),
        (MODEL, '0 1 0 0 x', 'assignment_x_1.txt: the file has something other than integers'))
    @ddt.unpack
    def test_a_file_that_is_none_is_named(self, model, assignment, text):
        files = self.useFixture(Files(model, assignment))
        error = self.assertRaises(reader.InvalidFileError, reader.read, files.model)
        self.assertIn(text, str(error))
        self.assertRegex(str(error), r'\. (Pass|Put|Unpack) ')

    def test_a_directory_without_models_and_a_wrong_name_are_errors(self):
        empty = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        error = self.assertRaises(reader.InvalidFileError, reader.find, [empty])
        self.assertIn(f'{empty}: the directory has no file model_*.txt', str(error))
        error = self.assertRaises(reader.InvalidFileError, reader.read, empty / 'a.txt')
        self.assertIn('a.txt: the name does not begin with "model_"', str(error))


def drawn(seed):
    """Return a random instance with all kinds of costs and constraints, with no violation."""
    chance = np.random.default_rng(seed)
    machines, services, resources = 8, 12, 3
    places = np.arange(machines)
    # The processes of a service are on machines one after the other, and so of many locations.
    of_service = np.repeat(np.arange(services), chance.integers(1, 7, services))
    processes = len(of_service)
    first = np.searchsorted(of_service, np.arange(services))
    assignment = (3 * of_service + np.arange(processes) - first[of_service]) % machines
    requirements = chance.integers(1, 20, (processes, resources))
    used = np.zeros((machines, resources), dtype=int)
    np.add.at(used, assignment, requirements)
    capacities = used + chance.integers(10, 40, used.shape)
    instance = reader.Instance(
        name='x', transient=np.array([False, True, False]), load_weights=np.array([10, 5, 1]),
        neighborhoods=places % 2, locations=places % 4, capacities=capacities,
        safety=(used.mean(axis=0) * chance.uniform(.6, 1.1, used.shape)).astype(int),
        machine_costs=chance.integers(0, 3, (machines, machines)) * (places != places[:, None]),
        spread=np.minimum(np.bincount(of_service, minlength=services), 2), dependencies=((),) * 12,
        services=of_service, requirements=requirements,
        process_costs=chance.integers(0, 5, processes),
        balances=(reader.Balance(0, 2, 2, 3), reader.Balance(1, 0, 1, 10)), weights=(1, 10, 2),
        assignment=assignment)
    # Services need what they have.
    there = [{int(place) for place in assignment[of_service == service] % 2}
             for service in range(services)]
    return dataclasses.replace(instance, dependencies=tuple(
        tuple(other for other in range(0, services, 3) if there[service] <= there[other])
        for service in range(services)))


@ddt.ddt
class SearchTest(testtools.TestCase):
    ENDLESS = Limits(budget=1)

    def judged(self, instance, found):
        """Return the verdict, after a comparison with the sum of the search."""
        verdict = evaluator.evaluate(instance, found.place.tolist())
        self.assertAlmostEqual(verdict.objective, found.purpose.total(found))
        return verdict

    @ddt.data(*range(6))
    def test_it_ends_better_and_without_violations(self, seed):
        instance = drawn(seed)
        found = search.begin(instance, 0)
        before = self.judged(instance, found)
        self.assertEqual(0, before.violated, before.violations)
        search.improve(found, 1e7, self.ENDLESS)
        after = self.judged(instance, found)
        self.assertEqual(0, after.violated, after.violations)
        self.assertLess(after.objective, .9 * before.objective)

    @ddt.data(*range(6))
    def test_moves_that_raise_the_objective_violate_nothing_but_capacities(self, seed):
        instance = drawn(seed)
        found = search.begin(instance, 0)
        lacking = set()
        for _ in range(400):
            found._draw(20, 1e5)
            verdict = self.judged(instance, found)
            self.assertEqual((found.free < 0).sum(), verdict.violated)
            self.assertEqual(verdict.violations['capacity'], verdict.violated)
            lacking.add(verdict.violated)
        self.assertGreater(found.count, 5)
        self.assertGreater(len(lacking), 1)

    def test_the_second_job_searches_several_times_and_keeps_the_best_result(self):
        self.useFixture(fixtures.MonkeyPatch('bench.roadef.search.RATE', 1e7))
        instance, ends = drawn(0), []
        improve = search.improve

        def recorded(found, effort, limits):
            improve(found, effort, limits)
            ends.append((found.purpose.total(found), effort))

        self.useFixture(fixtures.MonkeyPatch('bench.roadef.search.improve', recorded))
        for job, runs in enumerate(search.RUNS):
            ends.clear()
            found = search.solve(instance, 0.5, job)
            self.assertEqual(runs, len(ends))
            self.assertAlmostEqual(0.5e7, sum(effort for _total, effort in ends))
            self.assertEqual(min(total for total, _effort in ends), found.objective)
            verdict = evaluator.evaluate(instance, found.assignment)
            self.assertEqual(0, verdict.violated)
            self.assertAlmostEqual(found.objective, verdict.objective)

    def test_the_best_moves_and_swaps_violate_nothing_either(self):
        for seed in range(6):
            instance = drawn(seed)
            found = search.begin(instance, 0)
            before = self.judged(instance, found)
            found.build(100, Limits(budget=100))
            after = self.judged(instance, found)
            self.assertEqual(0, after.violated)
            self.assertLess(after.objective, before.objective)

    def test_the_same_random_numbers_give_the_same_result(self):
        places = []
        for seed in (3, 3, 4):
            found = search.begin(drawn(0), seed)
            found.anneal(2e6, (1e4, 1e3), self.ENDLESS)
            found._draw(20, 1e4)
            places.append(found.place.tolist())
        self.assertEqual(places[0], places[1])
        self.assertNotEqual(places[0], places[2])


class RunTest(testtools.TestCase):
    def report(self, path, **options):
        return roadef.run(argparse.Namespace(
            **{'files': [path], 'seconds': .05, 'jobs': 1, **options}))

    def test_each_instance_has_a_row(self):
        files = self.useFixture(Files())
        files.path.joinpath('lb_x_1.txt').write_text('60\n')
        found = self.report(files.path)
        row = dict(zip(roadef.COLUMNS, found.tables[1].rows[0], strict=True))
        self.assertEqual(('x_1', 74, None, 60, 0),
                         (*(row[name] for name in ('instance', 'before', 'best published',
                                                   'lower bound', 'violations')),))
        self.assertEqual((row['after'] - 60) / 74, row['score'])
        self.assertEqual(('x', 1, row['score'], row['score']), found.tables[0].rows[0])

    def test_missed_targets_are_failures(self):
        def row(name, score, violations=0):
            return name, *[None] * 6, score, violations, *[None] * 4
        self.assertEqual((), tuple(roadef.failures([row('a1_1', .01), row('b_1', .04)])))
        self.assertEqual(['a1_1: 2 violations', 'mean score 0.0300 of set a, target 0.02',
                          'mean score 0.0600 of set b, target 0.05'],
                         roadef.failures([row('a1_1', .03, 2), row('b_1', .06)]))

    def test_a_bad_file_ends_the_bench_with_its_name(self):
        files = self.useFixture(Files(assignment=None))
        error = self.assertRaises(SystemExit, self.report, files.path)
        self.assertIn('assignment_x_1.txt: the file cannot be read', str(error))

    def test_the_best_results_are_found_by_any_spelling(self):
        self.assertEqual((3353533859, 3353533859, None),
                         tuple(map(roadef.best_of, ('b_01', 'b_1', 'x_01'))))
