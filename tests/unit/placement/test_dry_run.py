"""Asking placement about a move, over its real API's questions and answers."""

from urllib import parse

import ddt
import testtools

from kronos_nova.objects.dry_run import NO_ROOM_YET
from kronos_nova.objects.dry_run import NOTHING_BEFORE
from kronos_nova.objects.dry_run import ROOM
from kronos_nova.objects.dry_run import Before
from kronos_nova.objects.dry_run import Verdict
from kronos_nova.objects.plan import PlannedMove
from kronos_nova.objects.snapshot import Host
from kronos_nova.objects.snapshot import Instance
from kronos_nova.objects.snapshot import Service
from kronos_nova.placement import dry_run
from kronos_nova.placement import errors
from kronos_nova.placement.allocations import Consumer

MOVE = PlannedMove(order=1, phase='spread', instance_uuid='vm', source='a', destination='b',
      memory_mb=1, combined_after=0.0, reason='')
B = Host(name='b', uuid='rp-b', service=Service(state='up', status='enabled'), inventory={})


class RecordedPlacement:
    """Answers every question alike and keeps it."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def candidates(self, query):
        self.asked.append(dict(parse.parse_qsl(query)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def sharing(self):
        return frozenset()

    def consumer(self, uuid):
        return Consumer(uuid=uuid, allocations={})


def instance(**changes):
    return Instance(**{
        'uuid': 'vm', 'name': 'vm', 'display_name': 'vm', 'host': 'a', 'project_id': 'p',
        'status': 'ACTIVE', 'vcpus': 2, 'memory_mb': 512, 'disk_gb': 1,
        'resources': {'VCPU': 2, 'MEMORY_MB': 512}} | changes)


@ddt.ddt
class PlacementDryRunTest(testtools.TestCase):
    def ask(self, answer, before=NOTHING_BEFORE, **changes):
        self.placement = RecordedPlacement(answer)
        return dry_run.PlacementDryRun(self.placement)(MOVE, instance(**changes), B, before)

    def test_room_on_the_tree_of_the_destination(self):
        verdict = self.ask([{'allocations': {}}])
        self.assertEqual(('', ''), (verdict.refused, verdict.unasked))
        self.assertEqual([{'resources': 'MEMORY_MB:512,VCPU:2', 'in_tree': 'rp-b', 'limit': '1'}],
                         self.placement.asked)

    def test_a_move_that_waits_needs_less_room_by_what_leaves(self):
        before = Before(leaving=(instance(resources={'VCPU': 8, 'MEMORY_MB': 384}),),
                        arriving=(instance(resources={'VCPU': 1, 'MEMORY_MB': 128}),))
        self.assertEqual(Verdict(without=ROOM), self.ask([{'allocations': {}}], before))
        self.assertEqual('MEMORY_MB:256,VCPU:1', self.placement.asked[0]['resources'])
        self.assertEqual(Verdict(unasked=NO_ROOM_YET), self.ask([], before))

    def test_no_candidate_is_a_refusal_that_says_for_what(self):
        verdict = self.ask([], flavor_extra_specs={'trait:HW_CPU_X86_VMX': 'required'})
        self.assertIn('no candidate for 2 VCPU, 512 MEMORY_MB with HW_CPU_X86_VMX on b',
                      verdict.refused)

    def test_traits_of_the_flavor_are_asked_for(self):
        self.ask([{}], flavor_extra_specs={
            'trait:A': 'required', 'trait:B': 'forbidden', 'hw:cpu_policy': 'dedicated'})
        self.assertEqual('!B,A', self.placement.asked[0]['required'])

    def test_what_holds_nothing_needs_nothing(self):
        self.assertEqual('', self.ask([], resources={}).refused)
        self.assertEqual([], self.placement.asked)

    @ddt.data((errors.PlacementUnavailable(problem='down'), True),
              (errors.AccessRefused(problem='403'), True),
              (errors.AnswerNotUnderstood(problem='a page of a proxy'), True),
              (errors.PlacementTooOld(offered='1.10', needed='1.36', lacks='all'), True),
              (errors.PlacementRefused(problem='400: no such trait'), False),
              (errors.NotFound(problem='404'), False))
    @ddt.unpack
    def test_no_answer_is_no_refusal(self, error, is_of_every_move):
        verdict = self.ask(error)
        self.assertEqual('', verdict.refused)
        self.assertIn('could not be asked', verdict.unasked)
        self.assertIs(is_of_every_move, verdict.is_silent)
