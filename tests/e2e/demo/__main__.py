"""Run the demo.

    python -m tests.e2e.demo [--driver libvirt] [--fast] [--keep] [--output result.json]

Exit status: 0 when every policy ended at or below its threshold, placement's answers are as they
should be and every guest that really runs is alive, 1 when not, 2 when the cloud did not start.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import shlex
import signal
import sys
import time

from rich import console

from tests.e2e import box
from tests.e2e.box.processes import wait_for
from tests.e2e.box.settings import SOURCE
from tests.e2e.box.settings import BoxError
from tests.e2e.box.settings import command
from tests.e2e.demo import evidence
from tests.e2e.demo import faces
from tests.e2e.demo import hypervisors
from tests.e2e.demo import scenario
from tests.e2e.demo import view
from tests.e2e.demo.observe import Observer

NEVER = 1.0
LOOK = 0.5


class Demo:
    def __init__(self, plan, cloud, screen, names, picture):
        self._plan, self._cloud, self._screen = plan, cloud, screen
        self._names, self._picture = names, picture
        self._observer = Observer(cloud, plan)
        self._sampler = evidence.Sampler(cloud)
        self._pulse = hypervisors.Pulse(cloud) if cloud.hypervisors else None
        self._policies = cloud.settings.nova_conf['kronos']['policies_file']
        self._before = None
        self._times = {}
        self._access_offset = 0

    def run(self):
        """From the first process to the result, a dict for result.json."""
        self._times['begun'] = time.monotonic()
        self._write_policies(NEVER)
        self._screen.step(f'the cloud is in {self._cloud.root}')
        self._cloud.start()
        with self._pulse or contextlib.nullcontext():
            self._boot()
            self._balance()
            result = self._result()
            if self._pulse:
                result |= self._compare(result['moves'])
            if self._cloud.api:
                self._screen.step('the page, openstack kronos, a recording and its replay')
                result['faces'] = faces.look(self._cloud, self._picture)
                result['passed'] = result['passed'] and result['faces']['passed']
            return result

    def _compare(self, moves):
        self._screen.step('the same moves once more, by Nova without Kronos')
        found = {'not_heard': None, 'not_compared': None}
        try:
            found['not_heard'] = self._pulse.compare(moves)
        except Exception as error:  # of any kind: the work of Kronos is to be reported
            found['not_compared'] = f'{type(error).__name__}: {error}'
            self._screen.step(found['not_compared'])
        return found

    def _write_policies(self, threshold):
        """Kronos reads the file again when it changes."""
        self._policies.parent.mkdir(parents=True, exist_ok=True)
        partial = self._policies.with_suffix('.new')
        partial.write_text(self._plan.policies(threshold))
        partial.rename(self._policies)

    def _boot(self):
        client = self._cloud.client
        self._screen.step('booting servers, most of them on one host of a rack')
        for rack, hosts in self._plan.hosts.items():
            client.create_aggregate(rack, hosts)
        for uuid, name in self._plan.boot(self._cloud):
            self._names[uuid] = name
        client.wait_active(list(self._names), timeout=self._plan.timeout)
        if self._pulse:
            self._pulse.wait(self._names, self._plan.timeout)
        self._screen.step('waiting until Prometheus has seen every server for a while')
        _hosts, guests = self._plan.queries['cpu']
        self._cloud.monitoring.wait_series(guests, len(self._names), timeout=60)
        time.sleep(self._plan.window_seconds)

    def _balance(self):
        self._before = self._observer.look()
        self._times['at_work'] = time.monotonic()
        _entries, self._access_offset = self._cloud.placement.requests_since()
        self._screen.step('the policies get their threshold: Kronos is on its own from here')
        self._sampler.start()
        self._write_policies(self._plan.threshold)
        try:
            wait_for(self._balanced, self._plan.timeout, 'the cloud is not balanced', LOOK)
        except BoxError as error:
            self._screen.step(str(error))
        finally:
            self._sampler.stop()
        self._times['ended'] = time.monotonic()

    def _balanced(self):
        """Show how it is; whether there were moves, all have ended, and nothing is left to do."""
        picture = self._observer.look()
        self._screen.show(picture, self._plan.threshold)
        open_moves = [move for move in picture.moves if move['finished_at'] is None]
        values = [value for policies in picture.imbalance.values() for value in policies.values()]
        return (picture.moves and not open_moves and
                all(value is not None and value <= self._plan.threshold for value in values) and
                all(picture.cycles.get(rack) == 'balanced' for rack in self._plan.racks))

    # -- result

    def _result(self):
        after = self._observer.look()
        audit = evidence.audit(self._cloud.client, list(self._names))
        moves = self._moves(after)
        completed = [move for move in moves if move['state'] == 'completed']
        balanced = all(policy['balanced'] for policy in self._policy_results(after))
        atomic = all(move['placement']['post_allocations'] == 1 and
                     move['placement']['put_allocations'] == 0 for move in completed)
        split = all(move['evidence']['split'] > 0 for move in completed)
        guests = self._pulse.guests(self._names) if self._pulse else {}
        alive = all(guest['alive'] for guest in guests.values())
        began = self._times['begun']
        return {
            'passed': all((completed, balanced, audit['clean'], atomic, split, alive)),
            'balanced': balanced, 'atomic': atomic, 'split_seen_in_every_move': split,
            'threshold': self._plan.threshold, 'restraint': self._plan.restraint,
            'seconds': {'until_at_work': round(self._times['at_work'] - began, 1),
                        'balancing': round(self._times['ended'] - self._times['at_work'], 1)},
            'policies': self._policy_results(after),
            'hosts': {host: {'servers_before': self._before.guests[host],
                             'servers_after': after.guests[host],
                             **{f'{policy}_{when}': picture.loads[policy].get(host)
                                for policy in self._plan.queries
                                for when, picture in (('before', self._before), ('after', after))}}
                      for hosts in self._plan.hosts.values() for host in hosts},
            'moves': moves, 'guests': guests, 'audit': audit,
            'sampling_errors': self._sampler.errors}

    def _policy_results(self, after):
        def compare(rack, policy):
            before, now = self._before.imbalance[rack][policy], after.imbalance[rack][policy]
            return {'aggregate': rack, 'policy': policy, 'before': before, 'after': now,
                    'threshold': self._plan.threshold,
                    'balanced': now is not None and now <= self._plan.threshold}
        return [compare(rack, policy) for rack in self._plan.racks for policy in self._plan.queries]

    def _moves(self, after):
        entries, _offset = self._cloud.placement.requests_since(self._access_offset)
        wanted = ('uuid', 'plan_uuid', 'aggregate', 'phase', 'source', 'destination', 'state',
                  'migration_uuid', 'retry_count', 'planned_at', 'requested_at', 'finished_at',
                  'reason', 'error_type', 'error')
        return [{'server': move['instance_uuid'], 'name': self._names.get(move['instance_uuid']),
                 **{key: _plain(move[key]) for key in wanted},
                 'placement': evidence.writes(entries, move),
                 'evidence': self._sampler.of(move),
                 **(self._pulse.of_move(move) if self._pulse else {})} for move in after.moves]


def _plain(value):
    return f'{value.isoformat()}Z' if isinstance(value, datetime.datetime) else value


def summary(result, out):
    verdict = 'balanced' if result['passed'] else 'NOT as it should be'
    out.rule(f'The cloud is {verdict}')
    for policy in result['policies']:
        out.print(f'{policy["aggregate"]} {policy["policy"]}: imbalance '
                  f'{_figure(policy["before"])} -> {_figure(policy["after"])} '
                  f'(threshold {policy["threshold"]:.2f})')
    states = [move['state'] for move in result['moves']]
    posts = sum(move['placement']['post_allocations'] for move in result['moves'])
    puts = sum(move['placement']['put_allocations'] for move in result['moves'])
    out.print(f'moves: {states.count("completed")} completed of {len(states)}; placement got '
              f'{posts} POST /allocations and {puts} PUT for their servers')
    seen = sum(move['evidence']['split'] > 0 for move in result['moves'])
    typed = sum(move['evidence']['typed'] > 0 for move in result['moves'])
    out.print(f'seen in placement while moving, the source owned by the migration and the '
              f'destination by the server: {seen} moves, {typed} of them with both types')
    for line in _heard(result):
        out.print(line)
    if found := result.get('faces'):
        drawn = found['page'].get('picture') or found['page']['not_drawn']
        out.print(f'page: {found["page"]["url"]} answered {found["page"]["status"]} ({drawn}); '
                  f'openstack kronos status, recording and replay: '
                  f'{"worked" if found["passed"] else "see the result"}')
    audit = result['audit']
    out.print(f'allocations: {audit["active"]} of {audit["servers"]} servers ACTIVE; ' +
              ('each holds one allocation, where it runs; no other consumer holds any'
               if audit['clean'] else '; '.join(audit['problems'])))
    out.print(f'at work after {result["seconds"]["until_at_work"]} s, balanced after '
              f'{result["seconds"]["balancing"]} s more')


def _heard(result):
    """Lines about guests that really run."""
    for move in result['moves']:
        gap, copied = move.get('longest_gap_seconds'), move.get('copied')
        stock = move.get('stock_nova_gap_seconds')
        if gap is not None:
            memory = copied['memory_processed'] if copied else 0
            yield (f'{move["name"]}, {move["source"]} -> {move["destination"]}: not heard for '
                   f'{gap:.2f} s at most' +
                   (f', {stock:.2f} s by stock Nova' if stock is not None else '') +
                   (f'; {memory / 2 ** 20:.0f} MiB of memory copied' if memory else ''))
    if not_heard := result.get('not_heard'):
        yield (f'not heard at most, median: {not_heard["median_seconds"]:.2f} s, by stock Nova '
               f'{not_heard["stock_nova_median_seconds"]:.2f} s: {not_heard["ratio"]:.2f} times')
    if result['guests']:
        alive = sum(guest['alive'] for guest in result['guests'].values())
        yield f'guests: {alive} of {len(result["guests"])} alive where Nova says, and never twice'


def to_try(cloud):
    """Commands for a terminal to try with a cloud that is kept, as lines."""
    manage = f'{" ".join(command("kronos-nova", "kronos-manage"))} --config-file {cloud.nova.conf}'
    yield 'Things to try, in another terminal:'
    yield f'  {manage} status --watch'
    yield f'  {manage} plan list'
    yield f'  {manage} host drain compute1 --check'
    if cloud.api:
        login = cloud.identity.credentials()
        client = ' '.join(command('python-openstackclient', 'openstack'))
        yield '  the same by the API:'
        yield '  export ' + ' '.join(f'{name}={shlex.quote(value)}'
                                     for name, value in login.items())
        yield f'  {client} --os-kronos-endpoint {cloud.api.url} kronos status'
    yield 'To look at, in a browser on this machine:'
    if cloud.api:
        yield (f'  {cloud.api.url}/ui/    the page; log in as {login["OS_USERNAME"]} with '
               f'{login["OS_PASSWORD"]}, project {login["OS_PROJECT_NAME"]}')
    yield f'  {cloud.monitoring.alerts_url()}    the alerts of Prometheus'
    yield f'  {cloud.alerting.url}/api/v2/alerts    what Alertmanager has, as JSON'
    yield f'  {cloud.alerting.exporter_url}    what Prometheus reads of Kronos'
    yield 'and at the end:'
    yield f'  cd {SOURCE} && {sys.executable} -m tests.e2e.box stop {cloud.root}'


def _figure(value):
    return 'no data' if value is None else f'{value:.3f}'


def parser():
    made = argparse.ArgumentParser(prog='demo', description=__doc__.splitlines()[0])
    made.add_argument('--driver', choices=['fake', 'libvirt'], default='fake',
                      help='what runs the guests: they are made up, or libvirt and QEMU do')
    made.add_argument('--fast', action='store_true',
                      help='six hosts in one aggregate and short migrations, for CI')
    made.add_argument('--keep', action='store_true',
                      help='leave the cloud running and print its addresses')
    made.add_argument('--output', type=pathlib.Path, default=pathlib.Path('result.json'),
                      help='where the result goes (result.json)')
    made.add_argument('--trace', type=pathlib.Path,
                      help='an .npz with loads in percent to play, in place of synthetic days')
    made.add_argument('--concurrency', choices=['auto', 'threading', 'eventlet'], default='auto',
                      help="Nova's concurrency_backend")
    return made


def parse(argv=None):
    made = parser()
    arguments = made.parse_args(argv)
    if arguments.driver == 'libvirt' and (arguments.fast or arguments.trace):
        made.error('--fast and --trace are for guests that are made up, not for --driver libvirt')
    return arguments


def prepare(arguments):
    """The scenario, and a cloud for it that is not started yet."""
    if arguments.driver == 'libvirt':
        plan = hypervisors.SCENARIO
        settings = plan.settings(concurrency=arguments.concurrency)
    else:
        plan = scenario.FAST if arguments.fast else scenario.FULL
        settings = plan.settings(trace=arguments.trace, concurrency=arguments.concurrency,
                                 keystone=not arguments.fast)
    cloud = box.Cloud(settings)
    policies = cloud.root / 'etc' / 'kronos-policies.yaml'
    cloud.configure(nova_conf=plan.nova_conf(policies))
    return plan, cloud


def main():
    arguments = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    out, names = console.Console(), {}
    plan, cloud = prepare(arguments)
    screen = view.for_terminal(out, names, plan.hosts)
    cloud.progress = screen.step
    kept = False
    try:
        with screen:
            result = Demo(plan, cloud, screen, names, arguments.output.with_suffix('.png')).run()
        arguments.output.write_text(json.dumps(result, indent=2) + '\n')
        summary(result, out)
        out.print(f'details: {arguments.output}')
        if arguments.keep:
            cloud.release()
            kept = True
            out.print_json(data=cloud.addresses())
            for line in to_try(cloud):
                out.print(line, markup=False, highlight=False, soft_wrap=True)
        return 0 if result['passed'] else 1
    except BoxError as error:
        out.print(str(error), markup=False)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        if not kept:
            cloud.stop()


if __name__ == '__main__':
    sys.exit(main())
