"""Puts the components together: starts them in order, waits, and ends them all."""

import dataclasses
import functools
import os
import pathlib
import re
import subprocess
import tempfile
import time

from keystoneauth1 import exceptions

from tests.e2e.box import alerting
from tests.e2e.box import apis
from tests.e2e.box import conffile
from tests.e2e.box import identity
from tests.e2e.box import nova
from tests.e2e.box import processes
from tests.e2e.box import schema
from tests.e2e.box.client import Client
from tests.e2e.box.hypervisors.host import Hypervisors
from tests.e2e.box.mariadb import MariaDB
from tests.e2e.box.prometheus import Monitoring
from tests.e2e.box.rabbitmq import RabbitMQ
from tests.e2e.box.settings import PYTHONPATH
from tests.e2e.box.settings import BoxError
from tests.e2e.box.settings import Ports
from tests.e2e.box.settings import Settings
from tests.e2e.box.settings import command

PREFIX = 'kronos-box-'
LONGEST = 78
"""Characters of its folder's name: ``tmp/tmpabcdefgh/privsep.sock`` in it is a socket, and that may
have 107."""

PLAIN = re.compile(r'[a-zA-Z0-9._+@/-]+')
"""Characters of that name: scripts of Debian's and lists of paths take nothing else."""


class Cloud:
    """A running cloud; a context manager.

    :param progress: called with one line of text at every step
    """

    def __init__(self, settings=None, progress=None):
        self.settings = settings or Settings()
        self.progress = progress or (lambda text: None)
        self.root = _folder(self.settings.root)
        self._ports = Ports()
        self._janitor = processes.Janitor(self.root, self.settings.keep)
        self.database = MariaDB(self.root, self._ports)
        self.broker = RabbitMQ(self.root, self._ports)
        self.placement = apis.Placement(self.root, self._ports)
        self.glance = apis.Glance(self.root, self._ports)
        self.neutron = apis.Neutron(self.root, self._ports)
        self.identity = (identity.Keystone(self.root, self._ports) if self.settings.keystone
                         else identity.FixedToken())
        self.nova_api = apis.NovaApi(self.root, self._ports)
        self.api = (apis.KronosApi(self.root, self._ports)
                     if self.settings.kronos and self.settings.keystone else None)
        self.hypervisors = (Hypervisors(self.settings.hosts(), self.root, self._ports,
                                        self.settings.storage == 'shared')
                            if self.settings.driver == 'libvirt' else None)
        self.nova = nova.Nova(self.settings, self.root, self.hypervisors)
        self.alerting = (alerting.Alerting(self.root, self._ports, self.nova.conf)
                         if self.settings.alerting else None)
        self.monitoring = Monitoring(self.settings, self.root, self._ports, self.alerting,
                                     self.hypervisors and self.hypervisors.exporters.targets)
        self.client = Client(self.identity, self.endpoints())

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_exc):
        self.stop()

    def configure(self, **changes):
        """Change settings before it starts: those that need its root or addresses."""
        self.settings = dataclasses.replace(self.settings, **changes)

    # -- start

    def start(self):
        """Start everything and wait until every host can take servers.

        :raises BoxError: when a component does not come up
        """
        processes.prepare(self.root)
        self._janitor.start()
        self._step('preparing the databases', self._prepare_databases)
        self._step('starting MariaDB, RabbitMQ and Prometheus', self._start_backends)
        self._step('starting placement, glance, neutron, nova-api, conductors and scheduler',
                   self._start_services)
        self._step(f'starting {self.settings.computes} compute hosts', self._start_computes)

    def _step(self, text, work):
        self.progress(text)
        begun = time.monotonic()
        work()
        self.progress(f'{text}: done in {time.monotonic() - begun:.1f} s')

    def _prepare_databases(self):
        self.database.restore(schema.saved_databases(self._ports, self.settings.timeout,
                                                     self.progress))

    def _start_backends(self):
        timeout = self.settings.timeout
        self.broker.start(timeout)
        self.database.start(timeout)
        if self.hypervisors:
            self.hypervisors.start(timeout)
        self._configure()
        if self.alerting:
            self.alerting.start_alertmanager()
        self.monitoring.start({host: daemon.state_path / 'guests.json'
                               for host, daemon in self.nova.computes.items()}, timeout)

    def _start_services(self):
        self.identity.start(self.endpoints(), self.settings.timeout)
        for part in (self.placement, self.glance, self.neutron):
            part.start()
        if self.settings.kronos:
            self.manage('db', 'sync')
        if self.alerting:
            self.alerting.exporter.start()
        for part in (*self.nova.conductors, self.nova.scheduler, self.nova_api):
            part.start()
        if self.api:
            self.api.start(self.settings.timeout)
        # Only these: nova-compute ends if placement does not answer it at start.
        for process in (self.placement.process, self.broker.server):
            process.wait_ready(self.settings.timeout)

    def _configure(self):
        self.identity.configure(self.database)
        for api in (self.placement, self.glance, self.neutron):
            api.configure(self.database, self.identity)
        shared = nova.options(self.settings, self.root, self.database, self.broker.url)
        others = {section: self.identity.caller(api.url) for section, api in (
            ('placement', self.placement), ('glance', self.glance), ('neutron', self.neutron),
            # The user that fetches images for requests without a token.
            ('service_user', self.glance))}
        kronos = {'kronos_database': {'connection': self.database.url('kronos')},
                  'kronos_prometheus': {'url': self.monitoring.url}}
        layers = [shared, others, self.identity.middleware,
                  kronos if self.settings.kronos else {},
                  self.alerting.options if self.alerting else {}, self.settings.nova_conf]
        conffile.write(self.nova.conf, *layers)
        conffile.write(self.nova.compute_conf, *map(nova.without_controllers, layers))
        self.nova_api.configure(self.identity)
        self.nova.configure()

    def _start_computes(self):
        for daemon in self.nova.computes.values():
            daemon.start()
        for api in (self.glance, self.neutron, self.nova_api):
            api.process.wait_ready(self.settings.timeout)
        self.wait_hosts()

    def wait_hosts(self):
        """Wait until Nova knows every host, finds it up, and placement has its inventory."""
        wanted, trouble, shown = set(self.settings.hosts()), [], set()

        def known():
            self._check_alive()
            try:
                up = wanted & self._hypervisors_up()
                if up - shown:
                    self.progress(f'{len(up)} of {len(wanted)} compute hosts are up')
                    shown.update(up)
                return wanted == up and wanted <= self._candidates()
            except exceptions.HttpServerError as error:
                # nova-api trips over a host whose records are half made.
                trouble[:] = [str(error)]
                return False
        processes.wait_for(known, self.settings.timeout,
                           lambda: f'not all hosts are known {trouble or ""}', interval=0.5)

    def _hypervisors_up(self):
        return {each['hypervisor_hostname'] for each in self.client.hypervisors()
                if each['state'] == 'up'}

    def _candidates(self):
        """Names of the providers where a small server would fit."""
        names = self.client.providers()
        answer = self.client.placement(
            'GET', '/allocation_candidates?resources=VCPU:1,MEMORY_MB:1')
        return {names.get(uuid) for uuid in answer['provider_summaries']}

    def _check_alive(self):
        for daemon in self.nova.all():
            if not daemon.process.alive():
                raise BoxError(f'{daemon.name} ended:\n{daemon.process.tail()}')

    # -- use

    @functools.cached_property
    def image(self):
        return self.client.create_image()

    def boot(self, *names, timeout=180, **kwargs):
        """Servers with these names, ACTIVE; their uuids."""
        uuids = [self.client.create(self.image, name, **kwargs) for name in names]
        self.client.wait_active(uuids, timeout)
        return uuids

    def manage(self, *arguments, check=True):
        """Run kronos-manage on the box' nova.conf; what it printed."""
        done = subprocess.run(
            [*command('kronos-nova', 'kronos-manage'),
             '--config-file', str(self.nova.conf), *arguments],
            # Of this source, as all of the box' services are.
            env={**os.environ, 'PYTHONPATH': PYTHONPATH}, capture_output=True, text=True)
        if check and done.returncode:
            raise BoxError(f'kronos-manage {" ".join(arguments)} ended with {done.returncode}:\n'
                           f'{done.stdout}{done.stderr}')
        return done.stdout

    def load_kronos(self, wanted):
        """Start nova-conductor and nova-compute again, with the line that loads Kronos or without.

        :raises BoxError: they are not up in time
        """
        self.nova.set_kronos_line(wanted)
        daemons = [*self.nova.conductors, *self.nova.computes.values()]
        for daemon in daemons:
            daemon.restart()
        # The old ones may have reported until they ended; a new one does when it has started. A
        # live migration that is asked for before is forgotten by its source.
        since = {each['host']: each['updated_at'] for each in self._services()}
        processes.wait_for(
            lambda: all(each['updated_at'] != since[each['host']] and each['state'] == 'up'
                        for each in self._services()),
            self.settings.timeout, 'Nova did not start again', interval=0.5)

    def _services(self):
        return [*self.client.services('nova-compute').values(),
                *self.client.services('nova-conductor').values()]

    def endpoints(self):
        """Service type -> URL, as a catalogue has them."""
        return {'compute': f'{self.nova_api.url}/v2.1', 'placement': self.placement.url,
                'image': self.glance.url, 'network': self.neutron.url}

    def addresses(self):
        """Return where everything is, for people and for programs."""
        return {'root': str(self.root), 'nova.conf': str(self.nova.conf),
                **self.endpoints(), **self.identity.credentials(),
                **({'page': f'{self.api.url}/ui/'} if self.api else {}),
                'prometheus': self.monitoring.url, **self._alerting_addresses(),
                'broker': self.broker.url,
                'database': self.database.url('kronos')}

    def _alerting_addresses(self):
        if self.alerting is None:
            return {}
        return {'alertmanager': self.alerting.url, 'kronos-exporter': self.alerting.exporter_url}

    # -- end

    def release(self):
        """Let it run on without this process; ``python -m tests.e2e.box stop ROOT`` ends it."""
        self._janitor.dismiss()

    def stop(self):
        """End every process; delete the files unless ``keep`` is set."""
        processes.stop_recorded(self.root)
        if not self.settings.keep:
            processes.remove(self.root)
        self._janitor.dismiss()


def _folder(wanted):
    """Make the folder of a box, which the box deletes at its end.

    :raises BoxError: there is something in it, or it does not do
    """
    if wanted is None:
        wanted = tempfile.mkdtemp(prefix=PREFIX)
    root = pathlib.Path(wanted).resolve()
    if len(str(root)) > LONGEST or not PLAIN.fullmatch(str(root)):
        raise BoxError(f'{root} does not do: some of what a box consists of takes no more than '
                       f'{LONGEST} characters, nor others than a-z, A-Z, 0-9 and ._+@-. Choose '
                       'another folder with --root, or with TMPDIR')
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise BoxError(f'{root} is there already. A box has a folder of its own, which it deletes '
                       'at its end: choose another')
    return root
