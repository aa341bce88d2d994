"""Monitoring of Kronos in a box: kronos-exporter, and Debian's Alertmanager."""

import requests

from tests.e2e.box.processes import Process
from tests.e2e.box.rabbitmq import listens
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import command

CONFIG = """\
route:
  receiver: none
  group_by: ['...']
  group_wait: 1s
  group_interval: 1s
receivers:
  - name: none
"""


class Alerting:
    """Prometheus scrapes ``exporter`` and tells ``alertmanager``.

    :param conf: path of nova.conf
    """

    def __init__(self, root, ports, conf):
        port, exporter_port = ports.take(), ports.take()
        self._config = root / 'etc' / 'alertmanager.yml'
        self.url, self.target = f'http://{LOOPBACK}:{port}', f'{LOOPBACK}:{port}'
        self.exporter_target = f'{LOOPBACK}:{exporter_port}'
        self.exporter_url = f'http://{self.exporter_target}/metrics'
        self.options = {'kronos_exporter': {'address': LOOPBACK, 'port': exporter_port}}
        self.exporter = Process(
            'kronos-exporter', [*command('kronos-nova', 'kronos-exporter'), '--config-file', conf],
            root, ready=lambda: listens(exporter_port))
        self.alertmanager = Process(
            'alertmanager',
            ['prometheus-alertmanager', f'--config.file={self._config}',
             f'--storage.path={root / "alertmanager"}', f'--web.listen-address={self.target}',
             '--cluster.listen-address=', '--log.level=warn'],
            root, ready=lambda: listens(port))

    def start_alertmanager(self):
        self._config.write_text(CONFIG)
        self.alertmanager.start()

    def alerts(self) -> set[str]:
        """Names of the alerts that Alertmanager has and that are not resolved."""
        answer = requests.get(f'{self.url}/api/v2/alerts', timeout=10)
        answer.raise_for_status()
        return {alert['labels']['alertname'] for alert in answer.json()}
