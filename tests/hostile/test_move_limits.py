"""Moves that one tenant may cause, in cycles over a virtual day."""

import dataclasses

import testtools

from kronos_nova.cooldown import PastMove
from kronos_nova.cycle.move_limits import MoveLimits
from kronos_nova.cycle.restraint import Restraint
from kronos_nova.objects import plan as plans
from tests.hostile import fakes_cloud as clouds

INTERVAL = 1800


class CapsTest(testtools.TestCase):
    def begin(self, hosts='abcd', cpu_hog=0.5, **caps):
        """A cloud of four even hosts, ten servers of other tenants on each, and one whose load its
        owner changes."""
        control = clouds.Control(self, hosts=hosts, room=64)
        control.options = dataclasses.replace(
            control.options, restraint=Restraint(1.0), move_limits=MoveLimits(**caps))
        for host in hosts:
            for number in range(10):
                control.cloud.server(f'{host}{number}', host, load=0.03,
                                     project_id=f'p{number % 5}')
        return control

    def begin_with_one_project_on_a(self, **caps):
        control = self.begin(**caps)
        for number in range(10):
            control.cloud.instances.pop(f'a{number}')
            control.cloud.server(f'x{number}', 'a', load=0.09, project_id='rich')
        return control

    def a_day(self, control, change):
        """Cycles for 24 hours, the moves made at once; change(number) before each.

        :returns: the MoveRecords
        """
        made = []
        for number in range(86400 // INTERVAL):
            change(number)
            control.run()
            for move in control.carry_out():
                made.append(move)
                control.history.append(PastMove(
                    instance_uuid=move.instance_uuid, source=move.source,
                    destination=move.destination, ended_at=control.clock().timestamp()))
            control.clock.go(INTERVAL)
        return made

    def toggled(self, **caps):
        """The moves that one server's load causes that is there for half an hour, then gone for as
        long."""
        control = self.begin(**caps)
        control.cloud.server('hog', 'a', load=0.0, project_id='bad')

        def toggle(number):
            control.cloud.load['hog'] = 0.5 if number % 2 else 0.0

        return self.a_day(control, toggle)

    def test_one_server_that_changes_its_load_moves_its_neighbours_so_often_and_no_more(self):
        free = self.toggled()
        neighbours = [move for move in free if move.instance_uuid != 'hog']
        self.assertGreater(len(neighbours), 10)
        capped = self.toggled(per_cause_and_day=6)
        caused = [move for move in capped if move.instance_uuid != 'hog']
        # Six off the host that it is on, and about as many back once it is idle.
        self.assertLessEqual(len(caused), 18)

    def test_a_plan_moves_so_many_servers_of_a_project(self):
        for cap, most in ((0, 8), (3, 3), (1, 1)):
            control = self.begin(per_project=cap)
            for number in range(8):
                control.cloud.server(f'x{number}', 'a', load=0.05, project_id='rich')
            report = control.run()
            rich = [move for move in report.moves if control.cloud.instances[
                move.instance_uuid].project_id == 'rich']
            self.assertLessEqual(len(rich), most)
            self.assertEqual(plans.PLANNED, report.outcome)
            if cap:
                self.assertEqual(cap, len(rich))
            else:
                self.assertGreater(len(rich), 3)

    def test_what_is_capped_is_said(self):
        control = self.begin_with_one_project_on_a(per_project=1)
        [reason] = [skip.reason for skip in control.run().not_moved if 'x7' in skip.instances]
        self.assertEqual('cap', reason)

    def test_a_project_is_moved_so_often_a_day(self):
        for cap in (0, 5):
            control = self.begin(per_project_and_day=cap)
            for number in range(12):
                control.cloud.server(f'x{number}', 'a', load=0.0, project_id='rich')

            def change(number, control=control):
                for each in range(12):
                    control.cloud.load[f'x{each}'] = 0.05 * ((number + each) % 3)

            made = [move for move in self.a_day(control, change)
                    if move.instance_uuid.startswith('x')]
            if cap:
                self.assertLessEqual(len(made), cap)
                self.assertGreater(len(made), 0)
            else:
                self.assertGreater(len(made), 5)

    def test_after_a_day_it_may_be_moved_again(self):
        control = self.begin_with_one_project_on_a(per_project_and_day=2)
        for passed, expected in ((0, 2), (7200, 0), (86400, 2)):
            control.clock.go(passed)
            control.run()
            made = [m for m in control.carry_out() if m.instance_uuid.startswith('x')]
            self.assertEqual(expected, len(made))

    def test_a_disabled_host_is_emptied_past_all_caps(self):
        control = self.begin(per_project=1, per_project_and_day=1, per_cause_and_day=1)
        for number in range(8):
            control.cloud.server(f'x{number}', 'a', load=0.06, project_id='rich')
        for _cycle in range(2):
            control.run()
            control.carry_out()
            control.clock.go(7200)
        control.cloud.hosts['a'] = clouds.DISABLED
        for _cycle in range(3):
            control.run()
            control.carry_out()
            control.clock.go(7200)
        self.assertEqual(set(), control.cloud.on('a'))
