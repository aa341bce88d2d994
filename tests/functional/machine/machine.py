"""The state machine: up to five instances on four hosts.

A live migration's allocations are Kronos' from the claim to the rollback; those of cold migrations
and resizes are swapped and claimed by Nova's two writes, and given back by Kronos. The
process that carries a step out may die in it. In the end all operations end in some way, an audit
heals its findings, and then each instance holds exactly what it should, and no other consumer
anything.
"""

import contextlib
import functools

import fixtures
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine
from hypothesis.stateful import invariant
from hypothesis.stateful import precondition
from hypothesis.stateful import rule
from keystoneauth1 import exceptions as ks_exceptions

from kronos_nova import exception
from kronos_nova.objects import migration_status
from kronos_nova.placement import audit
from kronos_nova.placement import errors
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement import moves
from kronos_nova.placement import ownership
from kronos_nova.placement.allocations import INSTANCE
from kronos_nova.placement.allocations import MIGRATION
from kronos_nova.placement.allocations import AllocationSet
from kronos_nova.placement.client import PlacementClient
from kronos_nova.placement.client import retrying
from tests.functional import base as functional
from tests.functional.machine import fakes_cloud as clouds
from tests.functional.machine import faults
from tests.functional.placement import base

MOST_SERVERS = 5
COLD = 'migration'
LIMITS = audit.AuditLimits()
LOOKS = 2

flavors = st.sampled_from([clouds.Flavor(1, 1), clouds.Flavor(2, 4), clouds.Flavor(1, 2, vgpus=1)])
hosts = st.sampled_from(clouds.HOSTS)
some_fault = st.none() | st.builds(faults.Fault, st.sampled_from(faults.KINDS), st.integers(0, 2))
which = st.integers(0, MOST_SERVERS - 1)


class RepairJournal:
    """Repairs are not undone here."""

    def plan(self, repair):
        return 'a repair'

    def close(self, uuid, state, detail=''):
        """Nothing to write down."""


class StillClient(PlacementClient):
    """Providers stay as they are here: what placement said of them is not asked again."""

    def __init__(self, *args):
        super().__init__(*args)
        self._said = {}

    def _get(self, path):
        if not path.startswith('/resource_providers') or path.endswith('/allocations'):
            return super()._get(path)
        if path not in self._said:
            self._said[path] = super()._get(path)
        return self._said[path]


class World:
    """The parts that outlive one run of the machine: the placement service and the providers.

    :param service: a PlacementTestCase that is set up
    """

    def __init__(self, service: base.PlacementTestCase):
        self.service = service
        # A quarter of placement's time goes into looking at its own schemas, for each request.
        service.useFixture(fixtures.MonkeyPatch(
            'jsonschema.Draft202012Validator.check_schema', lambda *_args, **_kwargs: None))
        self.client = StillClient(functional.placement_adapter(service.service),
                                  functools.partial(retrying, longest_pause=0.001))
        self.cloud = clouds.Cloud(service)
        self.faults = faults.Injector(service.service, self._interfere)
        self.steps = 0

    def clear(self):
        self.faults.arm(None)
        self.cloud.clear()
        for uuid in self.held():
            self.service.call('DELETE', f'/allocations/{uuid}', expected=204)

    def held(self):
        """{consumer: {provider: {resource class: amount}}}"""
        found = {}
        for provider in self.cloud.providers.values():
            for consumer, amounts in self.client.held_on(provider).items():
                found.setdefault(consumer, {})[provider] = amounts
        return found

    def _interfere(self, body):
        """Write a consumer's allocations again as another client would, which changes its
        generation."""
        for uuid in body or {}:
            consumer = self.client.consumer(uuid)
            if consumer.allocations:
                self.client.post(AllocationSet.from_consumers(consumer))
                return


def some(condition):
    """A precondition: there are servers that meet ``condition``."""
    return precondition(lambda self: self.found(condition))


def is_there(server):
    return True


def has_move(server):
    return server.move is not None


def is_idle(server):
    return server.task_state is None and server.vm_state == 'active'


def is_migrating(server):
    return has_move(server) and server.move.status == 'running' and (
        server.host == server.move.source)


def may_arrive(server):
    return is_migrating(server) and not server.move.is_rolled_back


def waits_for_confirmation(server):
    return (server.vm_state == 'resized' and server.task_state is None
            and has_move(server) and server.move.status == 'finished')


class Machine(RuleBasedStateMachine):
    def __init__(self, world: World):
        super().__init__()
        self.world = world
        world.clear()
        self.cloud, self.client = world.cloud, world.client
        # Servers whose held room was removed.
        self.stripped = set()
        self.changed = ()

    # Who is chosen

    def found(self, condition):
        return [server for server in self.cloud.servers
                if not server.is_deleted and condition(server)]

    def pick(self, number, condition):
        """One of the servers that meet ``condition``."""
        found = self.found(condition)
        return found[number % len(found)]

    def left_behind(self):
        """Deleted servers whose source does not know yet."""
        return [server for server in self.cloud.servers if server.is_deleted and server.move]

    @contextlib.contextmanager
    def step(self, fault, *things):
        """One process does something, and may die in it."""
        self.world.steps += 1
        self.cloud.now += 1
        self.world.faults.arm(fault)
        with contextlib.suppress(faults.ProcessDied):
            yield
        self.world.faults.arm(None)
        self.cloud.touch(*things)
        self.changed = [each for each in things if isinstance(each, clouds.Server)]

    def parties(self, server):
        move = server.move
        return moves.Parties(
            instance=server.uuid, migration=move.uuid,
            source=self.cloud.providers[move.source],
            destination=self.cloud.providers[move.destination],
            project_id=base.PROJECT, user_id=base.USER)

    # What users and Nova do

    @precondition(lambda self: sum(not each.is_deleted
                                   for each in self.cloud.servers) < MOST_SERVERS)
    @rule(host=hosts, flavor=flavors)
    def boot(self, host, flavor):
        server = clouds.Server(host=host, flavor=flavor, changed=self.cloud.now)
        wanted = self.world.service.consumer(self.cloud.wanted(host, flavor), uuid=server.uuid)
        # Where there is no room it does not come to be, and nothing of it is looked at.
        with contextlib.suppress(errors.InsufficientInventory), self.step(None, server):
            self.client.post(AllocationSet.from_consumers(wanted))
            self.cloud.servers.append(server)

    @some(is_there)
    @rule(number=which, fault=some_fault)
    def delete(self, number, fault):
        server = self.pick(number, is_there)
        server.task_state = 'deleting'
        with self.step(fault, server):
            if server.move and server.move.status == 'finished':
                self.end_resize(server, 'confirmed')
            self.remove(server.uuid)
            server.is_deleted = True

    @rule(seconds=st.sampled_from([10, 120, 7200]))
    def wait(self, seconds):
        self.world.steps += 1
        self.cloud.now += seconds
        self.changed = ()

    @some(has_move)
    @rule(number=which)
    def somebody_removes_what_a_migration_holds(self, number):
        """As "nova-manage placement audit --delete" may."""
        server = self.pick(number, has_move)
        with self.step(None):
            self.stripped.add(server.uuid)
            self.remove(server.move.uuid)

    # Live migration

    @some(is_idle)
    @rule(number=which, host=hosts, fault=some_fault)
    def begin_live_migration(self, number, host, fault):
        server = self.pick(number, is_idle)
        if server.host == host:
            return
        move = self.begin(server, migration_status.LIVE, host, server.flavor)
        with self.step(fault, server, move):
            try:
                moves.start(self.client, self.parties(server),
                            self.cloud.wanted(host, server.flavor))
                move.status = 'running'
            except errors.InsufficientInventory:
                self.end(server, 'error')
            except exception.PlacementError:
                self.revert(server)
                self.end(server, 'error')

    @some(may_arrive)
    @rule(number=which, fault=some_fault)
    def complete_live_migration(self, number, fault):
        server = self.pick(number, may_arrive)
        move = server.move
        server.host = move.destination
        with self.step(fault, server, move):
            self.remove(move.uuid)
            self.end(server, 'completed')

    @some(is_migrating)
    @rule(number=which, fault=some_fault)
    def roll_live_migration_back(self, number, fault):
        server = self.pick(number, is_migrating)
        server.move.is_rolled_back = True
        with self.step(fault, server, server.move):
            self.revert(server)
            self.end(server, 'failed')

    @precondition(lambda self: self.left_behind())
    @rule(number=which, fault=some_fault)
    def roll_back_after_deletion(self, number, fault):
        found = self.left_behind()
        server = found[number % len(found)]
        with self.step(fault, server.move):
            self.revert(server)
            self.end(server, 'failed')

    # Cold migration and resize

    @some(is_idle)
    @rule(number=which, host=hosts, flavor=flavors, fault=some_fault)
    def migrate_or_resize(self, number, host, flavor, fault):
        server = self.pick(number, is_idle)
        if (server.host, server.flavor) == (host, flavor):
            return
        move = self.begin(server, COLD, host, server.flavor)
        move.status = 'migrating'
        before = self.client.consumer(server.uuid).allocations
        with self.step(fault, server, move):
            try:
                self.swap(server)
                self.claim(server, self.cloud.wanted(host, flavor))
            except exception.PlacementError:
                # The conductor's rollback.
                self.revert(server, before=before)
                self.end(server, 'error')
                return
            server.host, server.flavor, server.vm_state = host, flavor, 'resized'
            server.task_state, move.status = None, 'finished'

    @some(waits_for_confirmation)
    @rule(number=which, fault=some_fault)
    def confirm(self, number, fault):
        server = self.pick(number, waits_for_confirmation)
        server.move.status = 'confirming'
        with self.step(fault, server, server.move):
            self.end_resize(server, 'confirmed')

    @some(waits_for_confirmation)
    @rule(number=which, fault=some_fault)
    def revert_resize(self, number, fault):
        server = self.pick(number, waits_for_confirmation)
        move = server.move
        server.host, server.flavor = move.source, move.flavor
        server.task_state, move.status = 'resize_reverting', 'reverting'
        with self.step(fault, server, move):
            self.revert(server)
            server.vm_state = 'active'
            self.end(server, 'reverted')

    # What keeps order

    @rule(fault=some_fault)
    def heal(self, fault):
        with self.step(fault):
            self.audit_and_heal()
        self.changed = tuple(self.cloud.servers)

    @invariant()
    def wherever_a_server_runs_that_is_held(self):
        """By it or by one of its migrations. Looked at for those that changed last."""
        for server in self.changed:
            if not (server.is_deleted or server.task_state == 'deleting'
                    or server.uuid in self.stripped):
                self.assert_kept(server)

    def assert_kept(self, server):
        consumers = {uuid: self.client.consumer(uuid).allocations
                     for uuid in (server.uuid, *(move.uuid for move in server.moves[-2:]))}
        for provider, amounts in self.cloud.wanted(server.host, server.flavor).items():
            for name, amount in amounts.items():
                most = max(held.get(provider, {}).get(name, 0) for held in consumers.values())
                assert most >= amount, (f'{server} runs without {name}={amount}; it and its '
                                        f'migrations hold {consumers}')

    def teardown(self):
        self.world.faults.arm(None)
        for server in self.cloud.servers:
            self.come_to_rest(server)
        self.cloud.now += clouds.SETTLED * 2
        # A new allocation next to a left one may have the wrong amount yet.
        for _look in range(LOOKS):
            homeless = {outcome.finding.instance for outcome in self.audit_and_heal()
                        if outcome.state == 'failed'}
        wanted = {server.uuid: self.cloud.wanted(server.host, server.flavor)
                  for server in self.cloud.servers if not server.is_deleted}
        held = self.world.held()
        # Others may have taken the room of a server that was stripped of what kept it.
        for uuid in homeless & self.stripped:
            wanted.pop(uuid)
            held.pop(uuid, None)
        # An additional allocation of a resize, known to its migration alone, may stay:
        # an audit takes it for another service's.
        for uuid in self.stripped & wanted.keys() & held.keys():
            others = ownership.classes(held[uuid]) - audit.EVERY_SERVER
            held[uuid] = ownership.without_classes(
                held[uuid], others - ownership.classes(wanted[uuid]))
        assert held == wanted, f'held: {held}\nwanted: {wanted}\n{self.cloud.servers}'

    # Steps

    def begin(self, server, kind, host, flavor):
        move = clouds.Move(kind=kind, source=server.host, destination=host, flavor=flavor,
                           changed=self.cloud.now)
        server.moves.append(move)
        server.task_state = 'migrating'
        return move

    def end(self, server, status):
        self.cloud.touch(server.move, server)
        server.move.status = status
        if server.task_state != 'deleting':
            server.task_state = None

    def end_resize(self, server, status):
        self.remove(server.move.uuid)
        server.vm_state = 'active'
        self.end(server, status)

    def revert(self, server, **kwargs):
        with contextlib.suppress(exception.PlacementError):
            moves.revert(self.client, self.parties(server), lambda: server.is_deleted, **kwargs)

    def swap(self, server):
        """Nova's move_allocations()."""
        migration = server.move.uuid

        def change(held):
            if held[migration].allocations:
                return None
            instance = held[server.uuid]
            return AllocationSet.from_consumers(
                held[migration].holding(instance.allocations, consumer_type=MIGRATION,
                                        project_id=base.PROJECT, user_id=base.USER),
                instance.holding({}, consumer_type=INSTANCE))

        self.client.replace((server.uuid, migration), change)

    def claim(self, server, wanted):
        """Nova's claim_resources()."""
        def change(held):
            return AllocationSet.from_consumers(held[server.uuid].holding(
                wanted, consumer_type=INSTANCE, project_id=base.PROJECT, user_id=base.USER))

        self.client.replace((server.uuid,), change)

    def remove(self, uuid):
        """Nova's delete_allocation_for_instance()."""
        with contextlib.suppress(ks_exceptions.ConnectFailure):
            functional.placement_adapter(self.world.service.service).delete(
                f'/allocations/{uuid}', raise_exc=False)

    def come_to_rest(self, server):
        """End all operations in progress without cleaning up after them."""
        move = server.move
        if server.task_state == 'deleting':
            server.is_deleted = True
        if move is not None:
            move.status = 'completed' if server.host == move.destination else 'error'
        server.task_state, server.vm_state = None, 'active'

    def audit_and_heal(self):
        held = holdings.read(self.client)
        found = audit.audit(held, self.cloud, LIMITS)
        healer = heal.Healer(self.client, self.cloud, held, LIMITS, RepairJournal())
        return [healer.heal(finding) for finding in found.findings if finding.can_be_healed]

