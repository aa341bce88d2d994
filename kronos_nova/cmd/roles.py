"""Roles of hosts. A role decides which parts of the configuration a host needs, and how the host
has access to Nova."""

import argparse
import dataclasses
import importlib.util
from collections.abc import Callable
from collections.abc import Iterable

from oslo_config import cfg

from kronos_nova.conf import unknown_options
from kronos_nova.inventory.connection import connect
from kronos_nova.inventory.openstack import OpenStackInventory
from kronos_nova.objects.shape import Shape
from kronos_nova.objects.snapshot import Snapshot
from kronos_nova.placement.client import PlacementClient
from kronos_nova.plugin import standalone

CONDUCTOR, COMPUTE, DAEMON = 'conductor', 'compute', 'daemon'
ROLES = (CONDUCTOR, COMPUTE, DAEMON)

PLANNING = ('windows', 'policies', 'prometheus', 'scope', 'names', 'noise', 'loads', 'exporters',
            'rules', 'buffers')
"""Names of the checks that are needed only on hosts that plan."""

REACHED = ('placement', 'nova', 'database')
"""Names of the checks that are needed only on hosts that plan or move servers."""

Access = tuple[Callable[[], Snapshot], Callable[[], PlacementClient],
               Callable[[], tuple[Shape, ...]]]
"""(function that reads the cloud, function that makes a placement client, function that reads the
flavors)"""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The role of a host.

    name : ``conductor``, ``compute`` or ``daemon``
    plans : true if hosts of the role plan, and so need policies and the options of planning
    skips : {name of a check: the reason why it is not made on such a host}
    managers : names of the managers that Kronos extends in Nova's services on such a host
    connect : function that prepares the access to Nova; None for a compute host, which needs no
        access. It returns three functions: the first reads the cloud, the second makes a placement
        client, and the third reads the flavors
    """

    name: str
    plans: bool
    skips: dict[str, str]
    managers: tuple[str, ...]
    connect: Callable[[], Access] | None


def guess(conf: cfg.ConfigOpts) -> str:
    """Guess the role of this host from its configuration.

    The first of these that applies decides:

    1. A host with a connection to Nova's API database is a conductor.
    2. A host whose configuration has the group ``[kronos_nova]`` (connection to Nova's public API),
       or ``run_in = daemons``, is a host for daemons.
    3. Any other host is a compute host.
    """
    found = unknown_options.sections(conf)
    if found.get('api_database', {}).get('connection'):
        return CONDUCTOR
    return DAEMON if conf.kronos.run_in == 'daemons' or 'kronos_nova' in found else COMPUTE


def role(name: str, conf: cfg.ConfigOpts, options: argparse.Namespace) -> Role:
    """Return the Role with this name.

    :param options: parsed arguments with ``config_file`` and ``config_dir``
    """
    if name == COMPUTE:
        unneeded = dict.fromkeys((*PLANNING, *REACHED, 'api'), 'a compute host does not need it')
        return Role(name=name, plans=False, managers=('Compute',), connect=None, skips=unneeded)
    outside = {'claims': 'only nova-compute has claims'}
    if name == CONDUCTOR:
        plans = conf.kronos.run_in == 'conductor'
        if not plans:
            outside |= dict.fromkeys(PLANNING, 'the daemons plan, not nova-conductor')
        return Role(name=name, plans=plans, managers=('Conductor', 'Scheduler'), skips=outside,
                    connect=lambda: _in_process(conf, options))
    return Role(name=name, plans=True, managers=(), connect=lambda: _by_api(conf),
                skips=outside | {'plugin': 'a daemon runs beside Nova, not in it'})


def _in_process(conf: cfg.ConfigOpts, options: argparse.Namespace) -> Access:
    standalone.load_nova(options.config_file, options.config_dir)
    # Imported late: these modules import Nova, which has to be configured first.
    from kronos_nova.plugin import inventory
    from kronos_nova.plugin import placement
    source = inventory.InProcessInventory(domain_keys=conf.kronos.failure_domain_key)
    return source.read, placement.client, source.read_flavors


def _by_api(conf: cfg.ConfigOpts) -> Access:
    connection = connect(conf)
    source = OpenStackInventory(connection, domain_keys=conf.kronos.failure_domain_key)
    return source.read, lambda: PlacementClient(connection.placement), source.read_flavors


def fits(names: Iterable[str]) -> list[str]:
    """Return the reasons why Kronos does not fit the installed Nova; empty if it fits.

    :param names: names of managers in Nova's services; see :mod:`kronos_nova.plugin.managers`
    """
    if importlib.util.find_spec('nova') is None:
        return ['Nova is not installed in the Python that runs this command']
    # Imported late: importing them imports Nova.
    from kronos_nova.plugin import compat
    from kronos_nova.plugin import managers
    problem = compat.version_problem()
    return [problem] if problem else [
        each for name in names for each in managers.resolve(name)[1]]
