"""Moves begin so that all are over soon, and never more at once than may be."""

import hypothesis
import numpy as np
import testtools
from hypothesis import strategies as st

from kronos_nova.objects.move import Caps
from kronos_nova.pacing import schedule
from kronos_nova.pacing.precopy import Copy
from kronos_nova.pacing.schedule import Job
from kronos_nova.pacing.schedule import Links
from kronos_nova.pacing.schedule import best
from kronos_nova.pacing.schedule import lower_bound
from tests.unit.planners.clouds import MANY

LINKS = Links(stream=1000.0, default=1000.0)
WIDE = Links(stream=1000.0, default=1e9)
CAPS = Caps(total=4, per_source=1, per_destination=2)


def job(source, destination, seconds, name=None, fixed=0.0, **more):
    return Job(instance=name or f'{source}{destination}{seconds}', source=source,
               destination=destination, copy=Copy(memory_mb=1000.0 * seconds, fixed=fixed), **more)


@st.composite
def plans(draw):
    jobs = []
    for n in range(draw(st.integers(1, 14))):
        source, destination = draw(st.permutations('abcde'))[:2]
        jobs.append(Job(
            instance=draw(st.sampled_from([f'vm{n}', 'vm0'])), source=source,
            destination=destination, after=tuple(draw(st.sets(st.integers(0, n - 1), max_size=2))
                                                 if n else ()),
            copy=Copy(memory_mb=draw(st.floats(1, 1e5)), dirty_mb_s=draw(st.floats(0, 300)),
                      fixed=draw(st.floats(0, 20))),
            heat=draw(st.sampled_from([0.0, 0.0, 0.5, 0.9])),
            due=draw(st.sampled_from([np.inf, np.inf, 50.0])),
            is_running=not jobs and draw(st.booleans())))
    return jobs


@st.composite
def limits(draw):
    return Caps(total=draw(st.integers(1, 6)), per_source=draw(st.integers(1, 3)),
                per_destination=draw(st.integers(1, 3)),
                sources=draw(st.dictionaries(st.sampled_from('ab'), st.integers(1, 4))))


class ScheduleTest(testtools.TestCase):
    def test_the_longest_goes_first_on_the_busiest_host(self):
        # First come: 1 s, 1 s, and then 8 s one after the other.
        jobs = [job('a', 'x', 1, 'p'), job('b', 'y', 1, 'q'), job('a', 'z', 8, 'r')]
        caps = Caps(total=1, per_source=1, per_destination=1)
        self.assertEqual(10, best(jobs, caps, LINKS).makespan)
        caps = Caps(total=2, per_source=2, per_destination=1)
        self.assertEqual(9.0, schedule.first_come(jobs, caps, WIDE).makespan)
        self.assertEqual(8.0, best(jobs, caps, WIDE).makespan)

    def test_two_on_one_link_take_twice_as_long(self):
        jobs = [job('a', 'x', 10, 'p'), job('b', 'x', 10, 'q')]
        self.assertEqual([20.0, 20.0], best(jobs, CAPS, LINKS).ends.tolist())
        self.assertEqual([10.0, 10.0], best(jobs, CAPS, WIDE).ends.tolist())

    def test_a_link_is_left_to_others_before_the_copying_begins(self):
        jobs = [job('a', 'x', 10, 'p'), job('b', 'x', 5, 'q', fixed=10)]
        self.assertEqual([10.0, 15.0], best(jobs, CAPS, LINKS).ends.tolist())
        jobs = [job('a', 'x', 10, 'p'), job('b', 'x', 5, 'q', fixed=6)]
        self.assertEqual([14.0, 15.0], best(jobs, CAPS, LINKS).ends.tolist())

    def test_small_ones_go_beside_large_ones_that_fill_the_link(self):
        # The two large ones at once, and nothing of the link is used well afterwards.
        jobs = [*(job('a', f'x{n}', 40, fixed=10) for n in range(2)),
                *(job('a', f'y{n}', 1, fixed=10) for n in range(8))]
        caps = Caps(total=2, per_source=2, per_destination=1)
        self.assertEqual(138.0, schedule.first_come(jobs, caps, LINKS).makespan)
        self.assertEqual(102.0, best(jobs, caps, LINKS).makespan)

    def test_links_that_are_free_are_used_first(self):
        jobs = [job('a', 'x', 10, 'p'), job('b', 'x', 10, 'q'), job('c', 'y', 10, 'r'),
                job('d', 'y', 10, 's')]
        caps = Caps(total=2, per_source=1, per_destination=2)
        self.assertEqual(20.0, best(jobs, caps, LINKS).makespan)

    def test_what_runs_already_is_on_its_links(self):
        jobs = [job('a', 'x', 10, 'p', is_running=True), job('b', 'x', 5, 'q')]
        self.assertEqual(10.0, best(jobs, CAPS, LINKS).ends[1])

    def test_the_hottest_goes_first_where_that_costs_no_time(self):
        jobs = [job('a', 'x', 5, 'p', heat=0.5), job('b', 'y', 5, 'q', heat=0.9)]
        caps = Caps(total=1, per_source=1, per_destination=1)
        self.assertEqual([5.0, 0.0], best(jobs, caps, LINKS).begins.tolist())
        jobs = [job('a', 'x', 9, 'p', heat=0.5), job('b', 'y', 1, 'q', heat=0.9),
                job('c', 'z', 1, 'r', heat=0.8)]
        caps = Caps(total=2, per_source=1, per_destination=1)
        self.assertEqual(9.0, best(jobs, caps, LINKS).makespan)

    def test_what_is_due_goes_first(self):
        jobs = [job('a', 'x', 9, 'p'), job('b', 'y', 3, 'q', due=4.0)]
        caps = Caps(total=1, per_source=1, per_destination=1)
        self.assertEqual([3.0, 0.0], best(jobs, caps, LINKS).begins.tolist())

    def test_nothing_takes_no_time(self):
        self.assertEqual(0.0, best([], CAPS, LINKS).makespan)

    @hypothesis.settings(max_examples=60 * MANY, deadline=None)
    @hypothesis.given(plans(), limits())
    def test_caps_and_precedence_are_kept_and_it_is_never_longer_than_first_come(self, jobs, caps):
        found = best(jobs, caps, LINKS)
        self.assertTrue((found.ends > found.begins - 1e-9).all())
        for moment in found.begins:
            under_way = [each for each, begin, end in zip(jobs, found.begins, found.ends,
                                                          strict=True)
                         if begin <= moment + 1e-9 < end - 1e-6 and not each.is_running]
            self.assertTrue(len(under_way) <= caps.total)
            for each in under_way:
                self.assertTrue(sum(other.source == each.source for other in under_way)
                                <= caps.sources.get(each.source, caps.per_source))
                self.assertTrue(sum(other.destination == each.destination for other in under_way)
                                <= caps.per_destination)
                self.assertEqual(1, sum(other.instance == each.instance for other in under_way))
        for n, each in enumerate(jobs):
            for earlier in each.after if not each.is_running else ():
                self.assertTrue(found.ends[earlier] <= found.begins[n] + 1e-6)
        if not any(each.due < np.inf for each in jobs):
            self.assertTrue(found.makespan
                            <= schedule.first_come(jobs, caps, LINKS).makespan + 1e-6)

    @hypothesis.settings(max_examples=60 * MANY, deadline=None)
    @hypothesis.given(plans(), limits())
    def test_no_schedule_is_shorter_than_the_lower_bound(self, jobs, caps):
        hypothesis.assume(not any(each.is_running for each in jobs))
        hypothesis.assume(all(each.copy.forecast(250).converges for each in jobs))
        found = schedule.first_come(jobs, caps, LINKS)
        self.assertTrue(lower_bound(jobs, caps, LINKS) <= found.makespan + 1e-6)
