"""Reports: sums of moves that are kept and that were dropped, of loads, and what is compared."""

import datetime

from kronos_nova.db import models
from kronos_nova.objects import move as moves
from kronos_nova.objects import plan as plans
from tests.unit.api import base

FIRST = datetime.datetime(2026, 3, 10, 12, tzinfo=datetime.UTC)
"""The time at which the first move ended."""


class ReportTest(base.ApiTestCase):
    def move(self, at, name='gpu'):
        self.plan((f'vm{at:%m%d}', 'a', 'b'), name=name, state=plans.EXECUTING, at=at)
        [move] = [each for each in self.journal.moves() if each.state == moves.PLANNED]
        with self.database.writer() as session:
            row = session.get(models.MoveRow, move.uuid)
            row.state, row.requested_at, row.finished_at = moves.COMPLETED, at, at

    def observe(self, day, hot, contended=0.0, name='gpu', hours=24.0, **replayed):
        with self.database.writer() as session:
            session.add(models.LoadSumRow(
                day=day, aggregate=name, observed_seconds=hours * 3600, hot_seconds=hot * 60,
                contended_seconds=contended * 60, **replayed))

    def report(self, conditions='since=2026-03-01T00:00:00Z&until=2026-03-15T00:00:00Z'):
        return self.ask(f'/v1/report?{conditions}')

    def comparison(self, *conditions):
        found = self.report(*conditions)['comparison']
        return (found['explanation'],
                *(each and (each['since'], each['until'], each['hot_minutes'],
                            each['contended_minutes']) for each in (
                                found['before'], found['after'])))

    def test_the_days_after_the_first_move_are_compared_with_as_many_before(self):
        self.move(FIRST)
        for day, hot in ((4, 999), (5, 40), (6, 50), (9, 60), (10, 999), (11, 8), (15, 10),
                         (16, 999)):
            self.observe(datetime.date(2026, 3, day), hot, 2 * hot)
        said, before, after = self.comparison()
        self.assertIn('2026-03-10', said)
        self.assertEqual(('2026-03-05', '2026-03-09', 50.0, 100.0), before)
        self.assertEqual(('2026-03-11', '2026-03-15', 9.0, 18.0), after)

    def test_days_that_were_observed_in_part_count_in_part(self):
        self.move(FIRST)
        self.observe(datetime.date(2026, 3, 8), 30, hours=6.0)
        self.observe(datetime.date(2026, 3, 11), 10)
        _said, before, _after = self.comparison()
        self.assertEqual(120.0, before[2])

    def test_absence_is_never_zero(self):
        self.assertEqual(('No move was completed yet, so there is nothing to compare.', None, None),
                         self.comparison())
        self.move(FIRST)
        said, before, after = self.comparison()
        self.assertEqual((None, None), (before, after))
        self.assertIn('no evaluation after 2026-03-10', said)
        self.observe(datetime.date(2026, 3, 12), 0)
        said, before, after = self.comparison()
        self.assertIn('nothing to compare with', said)
        self.assertEqual((None, 0.0), (before, after[2]))
        [sums] = self.report()['sums']
        self.assertEqual((1, 86400.0, 0.0), (
            sums['completed'], sums['observed_seconds'], sums['hot_seconds']))
        [sums] = self.report('since=2026-03-10T00:00:00Z&until=2026-03-11T00:00:00Z')['sums']
        self.assertEqual((1, None, None, None), (sums['completed'], *(
            sums[f'{name}_seconds'] for name in ('observed', 'hot', 'contended'))))

    def test_the_days_after_the_first_move_are_compared_with_no_moves(self):
        self.move(FIRST)
        for day, hours in ((9, 24), (11, 24), (12, 6)):
            self.observe(datetime.date(2026, 3, day), 10, replayed_seconds=hours * 3600,
                         unmoved_hot_seconds=hours * 300, unmoved_contended_seconds=hours * 600)
        found = self.report()
        self.assertIn('the last 28 days', found['comparison']['explanation'])
        unmoved = found['comparison']['without_moves']
        self.assertEqual(('2026-03-11', '2026-03-15', 1.25, 120.0, 240.0), tuple(
            unmoved[name] for name in ('since', 'until', 'observed_days', 'hot_minutes',
                                       'contended_minutes')))
        [sums] = found['sums']
        self.assertEqual((None, None), (
            sums['unmoved_hot_seconds'], sums['unmoved_contended_seconds']))
        [sums] = self.report('since=2026-03-09T00:00:00Z&until=2026-03-11T00:00:00Z')['sums']
        self.assertEqual((14400.0, 28800.0), (
            sums['unmoved_hot_seconds'], sums['unmoved_contended_seconds']))

    def test_before_there_were_replays_nothing_is_known_of_no_moves(self):
        self.move(FIRST)
        self.observe(datetime.date(2026, 3, 11), 10)
        found = self.report()
        self.assertIsNone(found['comparison']['without_moves'])
        self.assertNotIn('Without moves', found['comparison']['explanation'])
        self.assertIsNone(found['sums'][0]['unmoved_hot_seconds'])

    def test_hosts_are_of_no_project(self):
        self.move(FIRST)
        self.observe(datetime.date(2026, 3, 11), 10)
        by_project = self.report('by=project&since=2026-03-01T00:00:00Z&until=2026-03-15T00:00:00Z')
        self.assertEqual([None], [each['hot_seconds'] for each in by_project['sums']])
        said, before, after = self.comparison('project=p1&since=2026-03-01T00:00:00Z')
        self.assertIn('no project', said)
        self.assertEqual((None, None), (before, after))

    def test_months_without_a_move_are_there_when_they_were_observed(self):
        self.move(FIRST)
        self.observe(datetime.date(2026, 2, 3), 7)
        self.observe(datetime.date(2026, 2, 4), 7, name='db')
        found = self.report('by=month&since=2026-01-01T00:00:00Z&until=2026-12-31T00:00:00Z')
        self.assertEqual([('2026-02', 0, 14 * 60.0), ('2026-03', 1, None)], [
            (each['month'], each['completed'], each['hot_seconds']) for each in found['sums']])
        found = self.report('by=aggregate&aggregate=db&since=2026-01-01T00:00:00Z')
        self.assertEqual([('db', 7 * 60.0)], [
            (each['aggregate'], each['hot_seconds']) for each in found['sums']])

    def test_moves_that_were_dropped_are_counted_with_those_that_are_kept(self):
        self.move(FIRST)
        with self.database.writer() as session:
            session.add(models.MoveSumRow(
                day=datetime.date(2026, 3, 2), aggregate='gpu', project_id='', completed=4,
                failed=2, abandoned=1, memory_mb=4096, seconds=120.0))
        found = self.report('by=month&since=2026-01-01T00:00:00Z&until=2026-12-31T00:00:00Z')
        [sums] = found['sums']
        self.assertEqual((5, 2, 1, None), tuple(
            sums[name] for name in ('completed', 'failed', 'abandoned', 'servers')))
        self.assertEqual('2026-03-02T00:00:00Z', found['oldest'])
        [sums] = self.report('since=2026-03-10T00:00:00Z&until=2026-03-11T00:00:00Z')['sums']
        self.assertEqual((1, 1), (sums['completed'], sums['servers']))
