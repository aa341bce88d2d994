"""The cost of persistent claims in nova-compute: per claim, and at its start."""

import contextlib
import datetime
import itertools
import logging
import pathlib
import statistics
import tempfile
import time

from bench import report

CLAIM_TARGET_MS = 2.0
START_TARGET_SECONDS = 1.0
HOST = 'bench'


def register(subparsers):
    parser = subparsers.add_parser(
        'claims', help='what persistent claims add to instance_claim, and to the start')
    parser.add_argument('--claims', type=int, default=500, help='claims timed on each tracker')
    parser.add_argument('--rows', type=int, default=10000, help='claims kept at the start')
    parser.add_argument('--directory', type=pathlib.Path,
                        help='where the file is; default: a temporary directory')
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    import tests.functional  # noqa: F401 - sets Nova's threading mode
    with tempfile.TemporaryDirectory(dir=args.directory) as directory, _nova(directory):
        (plain, plain_cpu), (kept, kept_cpu) = _time_claims(args.claims)
        seconds, cpu_seconds = min(_time_start(args.rows) for _ in range(3))
    added, added_cpu = _differences(plain, kept), _differences(plain_cpu, kept_cpu)
    added_ms = statistics.median(added)
    failures = []
    if added_ms > CLAIM_TARGET_MS:
        failures.append(f'a claim adds {added_ms:.2f} ms in the median, target {CLAIM_TARGET_MS}')
    if seconds > START_TARGET_SECONDS:
        failures.append(f'{args.rows} claims start in {seconds:.2f} s, '
                        f'target {START_TARGET_SECONDS}')
    return report.Report(
        tables=(
            report.Table(
                'instance_claim, milliseconds', ('tracker', 'median', 'p99', 'median on the CPU'), (
                    ('of Nova', *_spread(plain), statistics.median(plain_cpu)),
                    ('with claims kept', *_spread(kept), statistics.median(kept_cpu)),
                    ('added', *_spread(added), statistics.median(added_cpu)))),
            report.Table('start', ('claims kept', 'seconds', 'seconds on the CPU'),
                         ((args.rows, seconds, cpu_seconds),))),
        failures=tuple(failures),
        notes=('Calls to the conductor and to placement are left out. '
               'Each instance is claimed on both trackers, in turns on either first; "added" is of '
               'the differences. The start is from opening the file to the usage being known, the '
               'best of three.',))


def _differences(before, after):
    return [late - early for early, late in zip(before, after, strict=True)]


def _spread(times):
    return statistics.median(times), statistics.quantiles(times, n=100)[98]


@contextlib.contextmanager
def _nova(directory):
    """Set up Nova's objects and configuration without its services, so that nothing is saved."""
    from unittest import mock

    import nova.conf
    from nova import objects
    from nova.compute import resource_tracker

    import kronos_nova.conf

    logging.disable()
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[])
    kronos_nova.conf.register_opts(nova.conf.CONF)
    nova.conf.CONF.set_override('state_path', directory)
    with (mock.patch.object(objects.Instance, 'save'),
          mock.patch.object(objects.ComputeNode, 'get_by_uuid', side_effect=_reported),
          mock.patch.object(objects.InstanceList, 'get_by_host', side_effect=_here),
          mock.patch.object(resource_tracker.ResourceTracker, '_update'),
          mock.patch.object(resource_tracker.ResourceTracker, '_setup_pci_tracker'),
          mock.patch('nova.compute.utils.is_volume_backed_instance', return_value=False)):
        yield


_instances_here = []


def _here(context, host, expected_attrs):
    """Return the instances that Nova has on the host, in place of the query to its database."""
    return list(_instances_here)


_usage = {'vcpus_used': 0, 'memory_mb_used': 512, 'local_gb_used': 0}


def _reported(context, uuid):
    """Return the ComputeNode as nova-compute last reported it, in place of the query to Nova's
    database."""
    from nova import objects
    return objects.ComputeNode(
        context, id=1, uuid=uuid, host=HOST, hypervisor_hostname=HOST, service_id=1, deleted=False,
        numa_topology=None, pci_device_pools=None, vcpus=10 ** 6, memory_mb=10 ** 9,
        local_gb=10 ** 8, stats={'kronos_claims': '1'}, **_usage)


def _tracker(kept):
    from unittest import mock

    import nova.conf
    from nova import context
    from nova import objects
    from nova.compute import provider_tree
    from nova.compute import resource_tracker as stock
    from nova.virt import fake

    from kronos_nova.claims import base
    from kronos_nova.plugin import resource_tracker

    driver = fake.MediumFakeDriver(None)
    driver.init_host(HOST)
    client = mock.Mock()
    if kept:
        tracker = resource_tracker.build(
            nova.conf.CONF, HOST, driver, client,
            base.load_store('sqlite', nova.conf.CONF, HOST))
    else:
        tracker = stock.ResourceTracker(HOST, driver, client)
    tracker.provider_tree = provider_tree.ProviderTree()
    tracker.service_ref = objects.Service(id=1, host=HOST)
    resources = driver.get_available_resource(HOST)
    with mock.patch.object(stock.ResourceTracker, '_update_available_resource',
                           lambda this, ctxt, found, startup: this._init_compute_node(ctxt, found)):
        began, cpu = time.perf_counter(), time.process_time()
        tracker._update_available_resource(context.get_admin_context(),
                                           {**resources, 'host_ip': '127.0.0.1'}, startup=True)
        tracker.started_in = time.perf_counter() - began, time.process_time() - cpu
    return tracker


def _instances():
    from nova import context
    from nova import objects

    ctxt = context.get_admin_context()
    flavor = objects.Flavor(id=1, flavorid='1', name='small', vcpus=1, memory_mb=512, root_gb=1,
                            ephemeral_gb=0, swap=0, extra_specs={})
    for number in itertools.count():
        uuid = f'{number:08d}-0000-4000-8000-000000000000'
        yield objects.Instance(
            ctxt, uuid=uuid, host=None, node=None, flavor=flavor, vm_state='building',
            task_state=None, os_type=None, project_id='p', numa_topology=None, resources=None,
            pci_requests=objects.InstancePCIRequests(requests=[], instance_uuid=uuid))


def _time_claims(count):
    """Return, for Nova's resource tracker and for that of Kronos, ([milliseconds of each claim],
    [CPU milliseconds of each claim])."""
    from nova import context

    ctxt = context.get_admin_context()
    trackers = _tracker(kept=False), _tracker(kept=True)
    times = ([], []), ([], [])
    turns = list(zip(trackers, times, strict=True))
    for instance in itertools.islice(_instances(), count):
        turns.reverse()
        for tracker, spent in turns:
            each = instance.obj_clone()
            began, cpu = time.perf_counter(), time.process_time()
            tracker.instance_claim(ctxt, each, HOST, {})
            spent[0].append((time.perf_counter() - began) * 1000)
            spent[1].append((time.process_time() - cpu) * 1000)
    trackers[1].ledger.store.close()
    return times


def _time_start(count):
    """Return (seconds, CPU seconds) from opening a file with ``count`` claims until the usage of
    the node is known."""
    import nova.conf

    from kronos_nova.claims import base
    from kronos_nova.objects.claim import Amount
    from kronos_nova.objects.claim import Claim

    store = base.load_store('sqlite', nova.conf.CONF, HOST)
    now = datetime.datetime.now(datetime.UTC)
    _instances_here[:] = itertools.islice(_instances(), count)
    for instance in _instances_here:
        instance.node = HOST
    old = [claim.key for claim in store.load()]
    store.write([Claim(host=HOST, node=HOST, instance_uuid=instance.uuid, created_at=now,
                       amount=Amount(vcpus=1, memory_mb=512, disk_gb=1))
                 for instance in _instances_here], old)
    store.close()
    _usage.update(vcpus_used=count, memory_mb_used=512 + 512 * count, local_gb_used=count)
    tracker = _tracker(kept=True)
    used = tracker.compute_nodes[HOST].vcpus_used
    tracker.ledger.store.close()
    if used != count:
        raise AssertionError(f'the usage after the start is {used} vCPUs, not {count}')
    return tracker.started_in
