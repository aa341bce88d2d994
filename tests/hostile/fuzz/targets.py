"""Targets of the fuzzer: each makes one valid input, mutates it, and judges the result."""

import contextlib
import functools
import io
import json
import math
import tempfile

from kronos_nova import exception
from kronos_nova.cmd import replay as replay_command
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.cycle.steps import plan_cycle
from kronos_nova.metrics import answer
from kronos_nova.metrics import labels
from kronos_nova.objects import plan as plans
from kronos_nova.placement import client as placement_client
from kronos_nova.policies import loader
from kronos_nova.policies import windows
from tests.hostile.fuzz import bus as bus_
from tests.hostile.fuzz import clouds
from tests.hostile.fuzz import mutate
from tests.unit.record.clouds import Cloud
from tests.unit.record.referee import Referee

NOW = 1_793_000_000.0


class Unsound(Exception):
    """A result that must not be, though nothing was raised."""


def expect(condition, text):
    if not condition:
        raise Unsound(text)


def prometheus(rng):
    """An answer of Prometheus, to one policy's question, in a cloud of two aggregates."""
    cloud = clouds.TwoAggregates(rng)
    body = mutate.encoded(cloud.answer(rng.choice(('imbalance', 'vm_profile'))))
    mutated = (mutate.text(rng, body) if rng.random() < 0.3
               else mutate.encoded(mutate.tree(rng, json.loads(body))))
    try:
        vector = answer.read_vector(mutated, 'fuzz')
    except exception.MetricsError as error:
        expect(str(error).isprintable() and len(str(error)) < 2000, f'message {str(error)!r:.200}')
        return
    expect(all(math.isfinite(sample.timestamp) for sample in vector.samples), 'a time')
    expect(all(warning.isprintable() for warning in vector.warnings), 'a warning')
    labels.diagnose(vector, 'host', cloud.names)
    with contextlib.suppress(exception.MetricsError):
        answer.read_matrix(mutated, 'fuzz')
    kind = rng.choice(('imbalance', 'vm_profile'))
    cloud.vectors[kind] = vector
    _sound(cloud.snapshot, _planned(cloud))


def one_aggregate(rng):
    """Actions of one tenant, host or aggregate, with another aggregate that has none of them."""
    cloud = clouds.TwoAggregates(rng)
    healthy = _named(_planned(cloud), 'good')
    cloud.spoil(rng)
    report = _planned(cloud)
    _sound(cloud.snapshot, report)
    expect(_named(report, 'good') == healthy, 'the healthy aggregate is planned otherwise')


def snapshot(rng):
    """A recorded snapshot, replayed by the command."""
    with tempfile.TemporaryDirectory(prefix='kronos-fuzz-') as folder:
        Cloud(rng.random(), rng.choice(('spread', 'pack')), hosts=rng.choice((1, 4, 9)),
              vms=rng.choice((9 * 4, 40))).write(folder)
        clouds.spoil_folder(rng, folder)
        code, out, err = _command([folder, '-f', 'json'])
        expect(code in (0, 1, 2), f'exit status {code}')
        expect('Traceback' not in err, err[-500:])
        shown = _command([folder])[1] if not code else err
        expect(all(line.isprintable() for line in shown.split('\n')), 'control characters')
        if not code:
            report = json.loads(out)
            expect(all(each['outcome'] != plans.FAILED for each in report['aggregates']),
                   'an aggregate failed')


def valid_snapshot(rng):
    """A random cloud as it is: its plan keeps every rule."""
    with tempfile.TemporaryDirectory(prefix='kronos-fuzz-') as folder:
        cloud = Cloud(rng.random(), rng.choice(('spread', 'pack')))
        if rng.random() < 0.5:
            cloud.lose_metrics()
        cloud.write(folder)
        code, out, err = _command([folder, '-f', 'json'])
        expect(code == 0, err[-500:])
        complaints = Referee(folder).check(json.loads(out))
        expect(not complaints, '; '.join(complaints))


def policies(rng):
    """A policies file."""
    content = mutate.text(rng, clouds.POLICIES)
    try:
        found = loader.parse(content)
    except exception.PolicyError as error:
        expect(len(str(error)) < 100_000, 'a message without bound')
        return
    expect(abs(sum(policy.weight for policy in found.active) - 1) < 1e-5, 'weights')


def cron(rng):
    """A maintenance window."""
    line = clouds.window_line(rng)
    try:
        found = windows.parse([line])
    except exception.ConfigurationError as error:
        expect(len(str(error)) < 10_000, 'a message without bound')
        return
    now = NOW + rng.randrange(400 * 86400)
    found.is_open('gpu', now)
    expect(found.opens_at('gpu', now) > now, f'{line}: opens in the past')


def inventory(rng):
    """Answers of Nova's and placement's API, read by the adapter that runs outside Nova."""
    cloud = _api()
    cloud.mutate_with(rng)
    try:
        found = cloud.read()
    except exception.InventoryError as error:
        expect(len(str(error)) < 20_000, 'a message without bound')
        return
    finally:
        cloud.heal()
    planned = clouds.plan_anything(found)
    _sound(found, planned)


def placement(rng):
    """Answers of placement to the client that moves allocations."""
    client = placement_client.PlacementClient(
        clouds.MutatedPlacement(rng),
        attempts=lambda: placement_client.retrying(attempts=2, longest_pause=0))
    for ask in (client.negotiate, lambda: client.consumer(clouds.UUID),
                lambda: client.tree(clouds.UUID), client.roots, lambda: client.name(clouds.UUID),
                lambda: client.held_on(clouds.UUID), client.sharing,
                lambda: client.aggregates(clouds.UUID),
                lambda: client.candidates('resources=VCPU:1')):
        with contextlib.suppress(exception.PlacementError):
            ask()


def bus(rng):
    """Tasks, results and claims, as anyone with access to the bus may send them."""
    there = bus_.Bus()
    try:
        there.tasks.execute_migration({}, **{'task': there.task(rng)})
        expect(not there.nova.requests or
               [(each.instance_uuid, each.source, each.destination)
                for each in there.nova.requests] == [('vm1', 'a', 'b')], 'another move was made')
        publisher, event, payload = (*there.result(rng), None, None)[:3]
        there.results.info({}, publisher, event, payload, {})
        expect(not there.cooldowns.quarantined(there.clock()),
               'a result that was made up put an instance into quarantine')
        rows = there.write(rng)
        expect(not rows['cmp2'], 'a host wrote claims of another')
        expect(len(json.dumps(rows)) < 100_000, 'rows without bound')
    finally:
        there.stop()


@functools.cache
def _api():
    return clouds.MutatedApi()


def clean_up():
    if _api.cache_info().currsize:
        _api().stop()


def _command(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = replay_command.main(arguments)
        except SystemExit as ended:
            code = ended.code
    return code, out.getvalue(), err.getvalue()


def _planned(cloud):
    return plan_cycle(
        cloud.snapshot, cloud.policies,
        EngineOptions(aggregates=('good', 'bad'), include_unassigned_hosts=False,
                      spread_planner='greedy', evacuate_disabled_hosts=True,
                      enforce_hard_affinity=True, planning_time_limit=60.0),
        PlannerPorts(source=cloud, clock=lambda: 0.0, now=NOW))


def _named(report, name):
    return next(each for each in report.aggregates if each.name == name)


def _sound(snapshot_, report):
    """No aggregate failed; every move is of an instance that is there, to a host that is up."""
    hosts = {host.name: host for host in snapshot_.hosts}
    where = {instance.uuid: instance.host for instance in snapshot_.instances}
    for aggregate in report.aggregates:
        expect(aggregate.outcome != plans.FAILED,
               f'{aggregate.name} failed: {aggregate.warnings}')
        json.loads(aggregate.to_json())
        for move in aggregate.moves:
            expect(where.get(move.instance_uuid) == move.source, f'{move}: is not there')
            expect(hosts[move.destination].service.is_available, f'{move}: to no such host')
            where[move.instance_uuid] = move.destination


TARGETS = {each.__name__: each for each in (
    prometheus, one_aggregate, snapshot, valid_snapshot, policies, cron, inventory, placement, bus)}
"""Name on the command line to the target."""
