"""Debian's Prometheus, scraping the load exporter or those of real hosts, and Kronos where it is
watched."""

import http
import json
import sys

import requests
import yaml

from tests.e2e.box.processes import Process
from tests.e2e.box.processes import wait_for
from tests.e2e.box.rabbitmq import listens
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import SOURCE

RULES = SOURCE / 'etc/kronos/prometheus/kronos.rules.yaml'
REAL_INTERVAL = '2s'
"""Between two scrapes of the exporters of real hosts, which cost these some of their time."""


class Monitoring:
    """The exporter and its Prometheus.

    ``rules`` is the file of the rules about Kronos, where it is watched: those that are shipped,
    unless that is set before the start.

    :param real: what to scrape in the place of the exporter, where hosts have their own:
        {job: {instance: address}}
    """

    rules = RULES

    def __init__(self, settings, root, ports, alerting=None, real=None):
        self._settings, self._root, self._alerting = settings, root, alerting
        self._real = real
        self.port, exporter_port = ports.take(), ports.take()
        self.url = f'http://{LOOPBACK}:{self.port}'
        self.target = f'{LOOPBACK}:{exporter_port}'
        self.orders = root / 'load.json'
        self._config = root / 'etc' / 'exporter.json'
        self._scrapes = root / 'etc' / 'prometheus.yml'
        self.exporter = Process(
            'exporter', [sys.executable, '-m', 'tests.e2e.box.exporter', exporter_port,
                         self._config], root, ready=lambda: listens(exporter_port))
        self.process = Process(
            'prometheus',
            ['prometheus', f'--config.file={self._scrapes}', f'--web.listen-address={LOOPBACK}:'
             f'{self.port}', f'--storage.tsdb.path={root / "prometheus"}', '--log.level=warn'],
            root, ready=self._answers)

    def start(self, guests, timeout):
        """:param guests: host name -> the file with its guests"""
        settings = self._settings
        self._config.write_text(json.dumps({
            'day_seconds': settings.day_seconds, 'orders': str(self.orders),
            'trace': str(settings.trace) if settings.trace else None,
            'vcpus': settings.vcpus, 'memory_mb': settings.memory_mb,
            'guests': {host: str(file) for host, file in guests.items()}}))
        self._scrapes.write_text(yaml.safe_dump(self._scrape_config()))
        for process in ([self.process] if self._real else [self.exporter, self.process]):
            process.start()
            process.wait_ready(timeout)

    def _scrape_config(self):
        config = {'global': {'scrape_interval': '1s', 'evaluation_interval': '2s'},
                  'scrape_configs': self._load_jobs()}
        if self._alerting is None:
            return config
        kronos = _job('kronos', self._alerting.exporter_target) | {
            'scrape_interval': '5s', 'scrape_timeout': '5s'}
        return config | {
            'scrape_configs': [*config['scrape_configs'], kronos], 'rule_files': [str(self.rules)],
            'alerting': {'alertmanagers': [_targets(self._alerting.target)]}}

    def _load_jobs(self):
        if not self._real:
            return [_job('load', self.target)]
        return [{'job_name': job, 'scrape_interval': REAL_INTERVAL, 'scrape_timeout': REAL_INTERVAL,
                 'static_configs': [{'targets': [address], 'labels': {'instance': instance}}
                                    for instance, address in addresses.items()]}
                for job, addresses in self._real.items()]

    def set_load(self, instances):
        """Say how busy guests are from now on; see ``load.Load``."""
        partial = self.orders.with_suffix('.new')
        partial.write_text(json.dumps({'instances': instances}))
        partial.rename(self.orders)

    def query(self, promql):
        """An instant vector: a list of label dict and value."""
        answer = requests.get(f'{self.url}/api/v1/query', params={'query': promql}, timeout=10)
        answer.raise_for_status()
        return [(sample['metric'], float(sample['value'][1]))
                for sample in answer.json()['data']['result']]

    def alerts_url(self):
        """Return the address of the page of alerts. Debian's package may have only the classic
        pages, and answers 404 at the usual address."""
        url = f'{self.url}/alerts'
        try:
            missing = requests.get(url, timeout=10).status_code == http.HTTPStatus.NOT_FOUND
        except requests.RequestException:
            return url
        return f'{self.url}/classic/alerts' if missing else url

    def wait_series(self, promql, count, timeout=60):
        """Wait until a query has ``count`` samples."""
        return wait_for(lambda: len(found := self.query(promql)) >= count and found, timeout,
                        f'{promql} has fewer than {count} samples', interval=0.5)

    def _answers(self):
        try:
            return requests.get(f'{self.url}/-/ready', timeout=2).ok
        except requests.ConnectionError:
            return False


def _job(name, target):
    return {'job_name': name, **_targets(target)}


def _targets(target):
    return {'static_configs': [{'targets': [target]}]}
