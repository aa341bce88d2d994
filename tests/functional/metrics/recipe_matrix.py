"""Every recipe on every kind of cloud, by every exporter that it can be used with, judged by a real
Prometheus that scrapes exporter text.

    python -m tests.functional.metrics.recipe_matrix           judge all cells, and compare with
                                                               doc/source/recipes-matrix.inc
    python -m tests.functional.metrics.recipe_matrix --write   write that file

A cell is right when every score that is believed is within 2 points of the truth, nothing is moved
to a host that is not believed, and the load after all moves is within 3 points of what the plan
promised on every believed host. What is left out has to be named: a host, or the servers of one.
"""

import argparse
import collections
import dataclasses
import pathlib
import sys
import time

import fixtures
import numpy as np

from kronos_nova import policies
from kronos_nova.cycle import steps
from kronos_nova.cycle.inputs import PlannerPorts
from kronos_nova.cycle.options import EngineOptions
from kronos_nova.metrics import adaptation
from kronos_nova.metrics import exporters
from kronos_nova.metrics import prometheus
from kronos_nova.metrics.endpoint import Endpoint
from tests.functional.metrics import machines
from tests.functional.metrics.machines import GIB
from tests.functional.metrics.machines import Guest
from tests.functional.metrics.machines import Machine

ROOT = pathlib.Path(__file__).parents[3]
RECIPES = ROOT / 'etc/kronos/policies'
TABLE = ROOT / 'doc/source/recipes-matrix.inc'
EXPORTERS = {"Debian's": machines.kumina, "inovex'": machines.inovex,
             "Tinkoff's": machines.tinkoff, 'ceilometer': machines.sg_core}
MEASURED, PROMISED = 0.02, 0.03
"""Parts of a host by which a score, and the load after all moves, may be off the truth."""
NAMES = ('cmp1', 'cmp2', 'cmp3', 'cmp4')
FULL_COUNT = 50
LIMITS = {'network': 0.7, 'disk': 0.5}
"""Scores above which a host may be no destination, by policies of cpu-memory-io.yaml."""


def hosts(**given):
    """Four hosts of two sizes, the first with most of the load. Values of ``given`` may be
    functions of a host's number."""
    sizes = ((16, 64), (16, 64), (32, 128), (16, 64))
    busy = [Guest(number=1 + n, cpu=1.0 + 0.1 * n, used=(3 + n % 3) * GIB, flavor=6 * GIB,
                  waiting=0.2 + 0.05 * n) for n in range(8)]
    some = [Guest(number=21 + n, cpu=0.5, used=2 * GIB, flavor=4 * GIB, waiting=0.1)
            for n in range(4)]
    few = [Guest(number=41, cpu=1.0, used=4 * GIB, flavor=6 * GIB, waiting=0.05)]
    one = [Guest(number=51, cpu=0.3, used=2 * GIB, flavor=4 * GIB, waiting=0.02)]
    pressures = ((0.4, 0.2), (0.1, 0.05), (0.02, 0.01), (0.02, 0.01))
    return [Machine(name=NAMES[n], cpus=cpus, memory=gib * GIB, guests=found,
                    pressure=pressures[n], network=0.3 if n == 0 else 0.1,
                    disk=0.02 if n == 0 else 0.004,
                    **{key: value(n) if callable(value) else value
                       for key, value in given.items()})
            for n, ((cpus, gib), found) in enumerate(zip(
                sizes, (busy, some, few, one), strict=True))]


def _with_guests(found, **changes):
    for each in found:
        for guest in each.guests:
            for name, value in changes.items():
                setattr(guest, name, value(guest) if callable(value) else value)
    return found


def hosts_with_io():
    """The hosts with most room have a busy interface and slow disks."""
    found = hosts()
    found[2].network, found[3].disk = 0.9, 0.04
    return found


def _labelled(found, region):
    for each in found:
        each.labels = each.libvirt_labels = {'region': region}
    return found


def _huge(found):
    for each in found:
        each.huge_pages = int(each.memory / GIB) - 16
    return _with_guests(found, huge=True, flavor=lambda guest: guest.used)


def _foreign():
    """The hosts of another region, with other addresses and domains of the same names."""
    found = _labelled(hosts(), 'two')
    for each in found:
        each.name, each.nodename, each.instance = (f'{name}-two' for name in (
            each.name, each.nodename, each.instance))
    return found


CONDITIONS = {
    'hosts of several sizes': hosts,
    'memory overcommitted': lambda: _with_guests(hosts(), flavor=16 * GIB),
    'KSM': lambda: _with_guests(hosts(shared=0.25), flavor=lambda guest: guest.used),
    'huge pages': lambda: _huge(hosts()),
    'balloons': lambda: _with_guests(hosts(), used=2 * GIB, flavor=2 * GIB),
    'resident memory reported as 0': lambda: _with_guests(
        hosts(), is_rss_known=False, flavor=lambda guest: guest.used),
    'CPUs wait for disks': lambda: hosts(iowait=0.6),
    'libvirt exporter of a host down': lambda: hosts(is_down=lambda n: n == 1),
    'libvirt exporter reads a part': lambda: hosts(shows=lambda n: 1 if n == 1 else None),
    'doubled scrapes': lambda: hosts(jobs=lambda n: 2 if n < 2 else 1),
    'hosts named by address': lambda: hosts(
        instance=lambda n: f'192.0.2.{n + 11}'),
    'two regions in one Prometheus': lambda: _labelled(hosts(), 'one'),
    'busy network and slow disks': hosts_with_io,
    'no servers': lambda: [each for each in hosts() if not each.guests.clear()],
}
FOREIGN = {'two regions in one Prometheus': _foreign}
ADAPTED = {'hosts named by address'}
"""Conditions in which the recipes are used as ``kronos-test-config --propose`` writes them."""
BY_FLAVOR = {'hosts of several sizes', 'memory overcommitted', 'libvirt exporter of a host down',
             'libvirt exporter reads a part', 'doubled scrapes', 'hosts named by address',
             'two regions in one Prometheus', 'CPUs wait for disks',
             'busy network and slow disks'}
"""Conditions in which servers have less memory than their flavors: an exporter that has no resident
memory cannot know how much a move takes along."""


def judge(test, condition, exporter):
    """Yield (recipe, what came of it) of the recipes that an exporter can be used with.

    :param test: takes fixtures
    """
    cloud = machines.Machines(CONDITIONS[condition](), EXPORTERS[exporter],
                              FOREIGN.get(condition, list)())
    server = cloud.server(test)
    client = prometheus.PrometheusClient(Endpoint(url=server.url))
    for path in sorted(RECIPES.glob('*.yaml')):
        if ('ceilometer' in path.stem) != (exporter == 'ceilometer'):
            continue
        text = path.read_text()
        if condition in ADAPTED:
            snapshot = cloud.snapshot()
            names = [host.name for host in snapshot.hosts]
            text = adaptation.adapted(text, exporters.find(client.instant, names, names,
                                                           snapshot.instances))
        yield path.stem, Cell(cloud, client, policies.parse(text), condition, exporter).verdict()


class Cell:
    """A recipe on a cloud."""

    def __init__(self, cloud, client, policy_set, condition, exporter):
        self.machines = {each.name: dataclasses.replace(each, guests=[*each.guests])
                         for each in cloud.machines}
        self.snapshot = cloud.snapshot()
        self.client, self.policy_set = client, policy_set
        self.condition, self.exporter = condition, exporter
        self.options = EngineOptions(aggregates=('agg',), include_unassigned_hosts=False,
                                     min_coverage=0.5)

    def verdict(self):
        """Return 'right', with what is left out; or begin with 'WRONG'."""
        ports = PlannerPorts(source=self.client, clock=lambda: 0.0, now=time.time())
        (_name, load), = steps.measured(self.snapshot, self.policy_set, self.options, ports)
        report, = steps.plan_cycle(self.snapshot, self.policy_set, self.options,
                                   ports).aggregates
        wrong = [*self.wrong_scores(load), *self.wrong_plan(report)]
        if wrong:
            return f'WRONG: {"; ".join(wrong)}'
        return '; '.join(['right', *self.left_out(load)])

    def wrong_scores(self, load):
        unbelieved = {(each.policy, each.host) for each in load.unbelieved if each.what == 'score'}
        for column, policy in enumerate(load.policies):
            for row, name in enumerate(sorted(self.machines)):
                score = load.scores[row, column]
                true = self.true_score(policy.name, self.machines[name])
                if (policy.name, name) not in unbelieved and not np.isnan(score) and abs(
                        score - true) > MEASURED:
                    yield f'{policy.name} of {name} is {score:.3f}, true is {true:.3f}'

    def wrong_plan(self, report):
        unbelieved = {each.host for each in report.unbelieved if each.what == 'score'}
        guests = {machines.uuid_of(guest.name): guest
                  for each in self.machines.values() for guest in each.guests}
        if not report.moves and self.is_uneven(report):
            yield 'nothing is moved'
        limits = {policy.name: LIMITS[policy.name] for policy in self.policy_set.active
                  if policy.name in LIMITS}
        for move in report.moves:
            for policy, limit in limits.items():
                if self.true_score(policy, self.machines[move.destination]) > limit:
                    yield f'a move to {move.destination}, beyond the limit of {policy}'
            if move.destination in unbelieved:
                yield f'a move to {move.destination}, which is not believed'
            self.machines[move.source].guests.remove(guests[move.instance_uuid])
            self.machines[move.destination].guests.append(guests[move.instance_uuid])
        for score in report.host_scores:
            if score.policy not in ('cpu', 'memory', 'count') or score.host in unbelieved:
                continue
            true = self.true_score(score.policy, self.machines[score.host])
            if abs(true - score.after) > PROMISED and not self.is_estimated(score.policy):
                yield f'{score.policy} of {score.host} becomes {true:.3f}, not {score.after:.3f}'

    def is_uneven(self, report):
        """Return whether a policy that has data is far above its threshold."""
        has_servers = any(each.guests for each in self.machines.values())
        return has_servers and not report.unbelieved and report.outcome != 'no_data' and any(
            max(scores) - min(scores) > 1.5 * policy.threshold
            for policy in self.policy_set.active if policy.mode == 'spread' and policy.weight
            for scores in [[self.true_score(policy.name, each) for each in
                            self.machines.values()]])

    def is_estimated(self, policy):
        return policy == 'memory' and self.exporter == "Debian's" and self.condition in BY_FLAVOR

    def true_score(self, policy, host):
        return {
            'cpu': host.cpu, 'memory': host.memory_load,
            'count': len(host.guests) / FULL_COUNT,
            'cpu-steal': sum(guest.waiting for guest in host.guests) / host.cpus,
            'cpu-pressure': host.pressure[0], 'memory-pressure': host.pressure[1],
            'network': host.network, 'disk': host.disk / 0.05}[policy]

    def left_out(self, load):
        """Yield what is not planned with, as the table has it."""
        for name in sorted(load.no_data):
            yield f'{name}: no data'
        rows = sorted(self.machines)
        silent = {rows[row] for row in range(len(rows))
                  if load.policies and np.isnan(load.scores[row]).any()}
        for host in sorted(silent - {each.host for each in load.unbelieved}):
            yield f'{host} has no score'
        for what, words in (('score', 'is not believed'), ('profile', 'keeps its servers')):
            by_host = collections.defaultdict(set)
            for each in load.unbelieved:
                if each.what == what:
                    by_host[each.host].add(each.policy)
            for host in sorted(by_host):
                yield f'{host} {words}'
        if any(self.is_estimated(policy.name) for policy in load.policies):
            yield 'memory of servers by flavor'


def table(found):
    """Return the table as reStructuredText.

    :param found: {condition: {exporter: {recipe: verdict}}}
    """
    lines = ['.. list-table::', '   :header-rows: 1', '   :widths: 22 18 60', '',
             '   * - Cloud', '     - Exporter', '     - Recipes']
    for condition, by_exporter in found.items():
        for number, (exporter, by_recipe) in enumerate(by_exporter.items()):
            lines += [f'   * - {condition if not number else ""}'.rstrip(), f'     - {exporter}']
            lines.append(f'     - {described(by_recipe)}')
    return '\n'.join(lines) + '\n'


def described(by_recipe):
    """Return the verdicts of a row, recipes with the same one together."""
    together = collections.defaultdict(list)
    for recipe, verdict in by_recipe.items():
        together[verdict].append(recipe)
    return '. '.join(f'{verdict}: {", ".join(names)}' for verdict, names in sorted(
        together.items(), key=lambda each: (each[0] != 'right', each[0])))


def main(argv=None):
    parser = argparse.ArgumentParser(prog='recipe_matrix', description=__doc__.split('\n\n')[0])
    parser.add_argument('--write', action='store_true', help='Write the table.')
    parser.add_argument('--only', metavar='WORD', help='Conditions with this word alone; prints.')
    options = parser.parse_args(argv)
    found = {}
    for condition in CONDITIONS:
        if options.only and options.only not in condition:
            continue
        found[condition] = {}
        for exporter in EXPORTERS:
            with _Test() as test:
                found[condition][exporter] = dict(judge(test, condition, exporter))
            print(f'{condition}, {exporter}: {described(found[condition][exporter])}', flush=True)
    wrong = [verdict for by_exporter in found.values() for by_recipe in by_exporter.values()
             for verdict in by_recipe.values() if verdict.startswith('WRONG')]
    cells = sum(len(by_recipe) for by_exporter in found.values()
                for by_recipe in by_exporter.values())
    print(f'{cells} cells, {len(wrong)} wrong')
    if options.write and not wrong:
        TABLE.write_text(table(found))
    is_same = options.only or (TABLE.exists() and TABLE.read_text() == table(found))
    if not is_same:
        print(f'{TABLE} is another table: see --write')
    return int(bool(wrong) or not is_same)


class _Test(fixtures.Fixture):
    """Takes the fixtures of one cloud."""


if __name__ == '__main__':
    sys.exit(main())
