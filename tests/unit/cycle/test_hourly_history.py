"""The last days are read once, and from then on only what is new."""

import dataclasses

import numpy as np
import testtools

from kronos_nova import exception
from kronos_nova.cycle import forecast_columns
from kronos_nova.cycle.forecast_columns import HOUR
from kronos_nova.cycle.forecast_columns import HourlyHistory
from kronos_nova.objects.metrics import Matrix
from kronos_nova.objects.metrics import MetricQuery
from kronos_nova.objects.metrics import Series

QUERY = MetricQuery('cpu', 'history', 'vm:avg1h', 'forecast.history_query')


class Hourly:
    """Answers range queries by a value an hour and name, and keeps what it was asked."""

    def __init__(self, names=('a', 'b'), warnings=()):
        self.names, self.warnings, self.asked, self.error = list(names), warnings, [], None

    def query_range(self, query, times):
        assert times.step == HOUR and not times.first % HOUR
        self.asked.append((int(times.first // HOUR) - 1, int(times.last // HOUR) - 1))
        if self.error:
            raise self.error
        moments = np.arange(times.first, times.last + 1, times.step).tolist()
        return Matrix(tuple(Series({'uuid': name}, tuple(
            (at, self.value(name, int(at // HOUR) - 1)) for at in moments))
            for name in self.names), self.warnings)

    def value(self, name, hour):
        return hour + self.names.index(name) / 10


class HourlyHistoryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.source, self.history = Hourly(), HourlyHistory()

    def read(self, hours, now=0.0):
        self.history.read(self.source, QUERY, 'uuid', hours, now)

    def row(self, name, hours):
        (_position, row, _host), = self.history.series([name])
        return self.history.matrix(hours)[row].tolist()

    def test_wrong_promql_is_reported_with_its_key_in_the_policies_file(self):
        self.source.error = exception.MetricsQueryRefused(source='http://p:9090', problem='no')
        error = self.assertRaises(exception.MetricsQueryRefused, self.read, [10])
        self.assertEqual('http://p:9090: forecast.history_query: no', str(error))

    def test_every_hour_is_found_by_name(self):
        hours = [10, 11, 12, 20, 21]
        self.read(hours)
        np.testing.assert_allclose([10.1, 11.1, 12.1, 20.1, 21.1], self.row('b', hours), rtol=1e-6)
        self.assertEqual([], list(self.history.series(['c'])))

    def test_the_first_question_is_for_one_hour_and_tells_how_many_the_next_may_be_for(self):
        self.read(list(range(30)))
        self.assertEqual([(0, 0), (1, 29)], self.source.asked)
        self.patch(forecast_columns, 'MOST_POINTS', 20)
        self.history = HourlyHistory()
        self.source.asked.clear()
        self.read(list(range(21)))
        self.assertEqual([(0, 0), (1, 10), (11, 20)], self.source.asked)

    def test_only_what_is_new_is_asked_for_and_what_is_old_is_forgotten(self):
        self.read([1, 2, 3, 7, 8])
        self.source.asked.clear()
        self.read([1, 2, 3, 7, 8])
        self.assertEqual([], self.source.asked)
        self.read([2, 3, 4, 8, 9])
        self.assertEqual([(4, 4), (9, 9)], self.source.asked)
        self.assertEqual([2, 3, 4, 8, 9], self.row('a', [2, 3, 4, 8, 9]))
        self.assertTrue(np.isnan(self.row('a', [1])).all())

    def test_servers_come_and_go(self):
        self.read([1, 2])
        self.source.names = ['b', 'c']
        self.read([2, 3])
        self.assertTrue(np.isnan(self.row('c', [2])).all())
        self.assertEqual([3], self.row('b', [3]))
        self.read([3, 4])
        self.assertEqual([], list(self.history.series(['a'])))
        np.testing.assert_allclose([3.1, 4.1], self.row('c', [3, 4]), rtol=1e-6)

    def test_what_cannot_be_true_is_not_known(self):
        self.source.value = lambda name, hour: (-1.0, float('inf'), float('nan'), .5)[hour]
        self.read([0, 1, 2, 3])
        self.assertEqual([True, True, True, False], np.isnan(self.row('a', [0, 1, 2, 3])).tolist())

    def test_what_is_given_twice_is_not_known(self):
        self.source.names = ['a', 'a', 'b']
        self.read([0, 1])
        self.assertTrue(np.isnan(self.row('a', [0, 1])).all())
        self.assertFalse(np.isnan(self.row('b', [0, 1])).any())

    def test_a_server_that_was_moved_has_a_series_of_each_host(self):
        """A query whose labels name the host too."""
        self.source.names = ['a', 'a', 'b']
        answer = self.source.query_range

        def query_range(query, times):
            first, second, other = answer(query, times).series
            first = dataclasses.replace(first, points=first.points[:3])
            return Matrix((first, dataclasses.replace(second, points=second.points[2:]), other))
        self.source.query_range = query_range
        self.read([0, 1, 2, 3, 4, 5])    # the first of them by itself
        self.assertEqual([False, False, True, False, False],
                         np.isnan(self.row('a', [1, 2, 3, 4, 5])).tolist())

    def test_the_last_hour_is_asked_for_again_while_nothing_is_known_of_it(self):
        """The store of an hour may be some minutes late."""
        usual = self.source.value
        self.source.value = lambda name, hour: usual(name, hour) if hour < 9 else float('nan')
        self.read([7, 8, 9], now=0.0)
        self.source.value = usual
        self.source.asked.clear()
        self.read([7, 8, 9], now=forecast_columns.PAUSE - 1)
        self.assertEqual([], self.source.asked)
        self.read([7, 8, 9], now=forecast_columns.PAUSE)
        self.assertEqual([(9, 9)], self.source.asked)
        self.assertAlmostEqual(9.1, self.row('b', [9])[0], 5)
        self.read([7, 8, 9], now=3 * forecast_columns.PAUSE)
        self.assertEqual(1, len(self.source.asked))

    def test_an_hour_of_old_that_nothing_is_known_of_is_asked_for_once(self):
        usual = self.source.value
        self.source.value = lambda name, hour: usual(name, hour) if hour > 7 else float('nan')
        self.read([7, 8, 9])
        self.source.asked.clear()
        self.read([7, 8, 9], now=2 * forecast_columns.PAUSE)
        self.assertEqual([], self.source.asked)

    def test_a_partial_answer_is_none(self):
        self.source.warnings = ('a store did not answer',)
        error = self.assertRaises(exception.MetricsPartial, self.read, [1])
        self.assertIn('policy cpu, history', str(error))
        self.assertTrue(np.isnan(self.history.matrix([1])).all())

    def test_more_series_than_any_cloud_has_are_refused(self):
        self.patch(forecast_columns, 'MOST_SERIES', 1)
        self.assertRaises(exception.MetricsTooLarge, self.read, [1])

    def test_what_failed_is_asked_for_again_after_a_while(self):
        self.source.error = exception.MetricsUnreachable(source='s', problem='p')
        self.assertRaises(exception.MetricsUnreachable, self.read, [1], 0.0)
        self.source.error = None
        self.assertRaises(exception.MetricsUnreachable, self.read, [1], forecast_columns.PAUSE - 1)
        self.assertEqual(1, len(self.source.asked))
        self.read([1], forecast_columns.PAUSE)
        self.assertEqual([1], self.row('a', [1]))
