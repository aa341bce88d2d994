"""Nova's daemons: stock binaries, a nova.conf for controllers and one for computes."""

import json
import sys

from tests.e2e.box import conffile
from tests.e2e.box.processes import Process
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import command

CONTROLLER_ONLY = ('database', 'api_database', 'kronos_database')


class Daemon:
    """A stock binary of Nova with its own host name and state path."""

    def __init__(self, name, argv, root, shared, enter=list):
        self.name = name
        self.state_path = root / 'state' / name
        self.own_conf = root / 'etc' / 'nova' / f'{name}.conf'
        self.process = Process(
            name, [*argv, '--config-file', shared, '--config-file', self.own_conf], root,
            enter=enter)

    def configure(self, *layers):
        self.state_path.mkdir(parents=True, exist_ok=True)
        conffile.write(self.own_conf, {
            'DEFAULT': {'host': self.name, 'state_path': self.state_path},
            'oslo_concurrency': {'lock_path': self.state_path / 'locks'}}, *layers)

    def prepend_path(self, folder):
        """Have it find Python packages in ``folder`` first; before it starts."""
        self.process.env['PYTHONPATH'] = f'{folder}:{self.process.env["PYTHONPATH"]}'

    def start(self):
        self.process.start()

    def restart(self, timeout=10):
        """Stop it if it runs, and start it with the files it had."""
        if self.process.alive():
            self.process.stop(timeout)
        self.process.start()


class Nova:
    """conductors, scheduler and computes; ``computes`` is host name -> Daemon.

    :param hypervisors: where computes have a real one
    """

    def __init__(self, settings, root, hypervisors=None):
        self._settings, self._hypervisors = settings, hypervisors
        self.conf = root / 'etc' / 'nova' / 'nova.conf'
        self.compute_conf = root / 'etc' / 'nova' / 'nova-compute.conf'
        self.faults = root / 'faults.json'
        names = [f'conductor{number}' for number in range(1, settings.conductors + 1)]
        self.conductors = [Daemon(name, command('nova', 'nova-conductor'), root, self.conf)
                           for name in names]
        self.scheduler = Daemon('scheduler', command('nova', 'nova-scheduler'), root, self.conf)
        if hypervisors:
            self.computes = {
                name: Daemon(name, command('nova', 'nova-compute'), root, self.compute_conf,
                             host.enter) for name, host in hypervisors.hosts.items()}
        else:
            launcher = [sys.executable, '-m', 'tests.e2e.box.compute']
            self.computes = {host: Daemon(host, launcher, root, self.compute_conf)
                             for host in settings.hosts()}

    def configure(self):
        for daemon in [*self.conductors, self.scheduler]:
            daemon.configure()
        if self._hypervisors:
            for name, daemon in self.computes.items():
                # What the settings say goes before what a host has by itself.
                own = self._hypervisors.hosts[name].options(self._hypervisors.virt_type)
                daemon.configure(own, without_controllers(self._settings.nova_conf))
                daemon.prepend_path(self._hypervisors.python_path)
            return
        for daemon in self.computes.values():
            daemon.configure({'box': {
                'faults': self.faults, 'vcpus': self._settings.vcpus,
                'memory_mb': self._settings.memory_mb}})
        self.set_faults({'default': {'seconds': self._settings.migration_seconds}})

    def set_kronos_line(self, wanted):
        """Write or remove the line that loads Kronos, for daemons that start from now on."""
        lines = 'driver = kronos', '#driver = kronos'
        for path in (self.conf, self.compute_conf):
            text = path.read_text().replace(lines[1], lines[0])
            path.write_text(text if wanted else text.replace(*lines))

    def prepend_path(self, folder):
        """Have all daemons find Python packages in ``folder`` first; before they start."""
        for daemon in self.all():
            daemon.prepend_path(folder)

    def set_faults(self, orders):
        """Say how live migrations go from now on; see ``virt/box_driver.py``."""
        partial = self.faults.with_suffix('.new')
        partial.write_text(json.dumps(orders))
        partial.rename(self.faults)

    def all(self):
        return [*self.conductors, self.scheduler, *self.computes.values()]


def without_controllers(layer):
    """nova-compute refuses to reach the database by itself, and says so in its log."""
    return {section: said for section, said in layer.items() if section not in CONTROLLER_ONLY}


def options(settings, root, database, broker_url):
    """The sections of nova.conf that all its services share, but those about other services."""
    return {
        'DEFAULT': {
            'transport_url': broker_url, 'my_ip': LOOPBACK, 'state_path': root / 'state',
            'concurrency_backend': settings.concurrency,
            'compute_driver': 'box_driver.BoxDriver',
            'report_interval': 5, 'service_down_time': 30, 'graceful_shutdown_timeout': 5,
            # Else periodic tasks, the discovery of hosts among them, begin up to a minute late.
            'periodic_fuzzy_delay': 0,
            'update_resources_interval': 30, 'rpc_response_timeout': 120},
        'api_database': {'connection': database.url('nova_api')},
        'database': {'connection': database.url('nova_cell1')},
        'conductor': {'workers': settings.conductor_workers},
        'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 2},
        'filter_scheduler': {'shuffle_best_same_weighed_hosts': True},
        'quota': {'instances': -1, 'cores': -1, 'ram': -1, 'server_groups': -1,
                  'server_group_members': -1},
        'compute': {'resource_provider_association_refresh': 0},
        'vnc': {'enabled': False},
        'oslo_concurrency': {'lock_path': root / 'state' / 'locks'},
        'oslo_messaging_rabbit': {'heartbeat_timeout_threshold': 60},
        'oslo_messaging_notifications': {'driver': 'kronos' if settings.kronos else None},
    }
