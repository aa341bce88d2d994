"""The time that kronos-exporter takes to answer at the size of a large cloud, and the number of its
series."""

import pathlib
import statistics
import tempfile
import time

from bench import api
from bench import report

SECONDS = 0.3
"""A scrape is given ten, and is one of many that Prometheus makes at a time."""

SERIES, SERIES_A_HOST = 40, 6


def register(subparsers):
    parser = subparsers.add_parser('exporter', help='answers of kronos-exporter')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--vms', type=int, default=30_000)
    parser.add_argument('--aggregates', type=int, default=10)
    parser.add_argument('--moves', type=int, default=5_000, help='in the journal')
    parser.add_argument('--scrapes', type=int, default=30)
    parser.set_defaults(run=run)


def run(args) -> report.Report:
    import requests
    from prometheus_client import parser

    from kronos_nova.cmd import exporter

    with tempfile.TemporaryDirectory() as folder:
        conf, database = api.configured(args, pathlib.Path(folder))
        api.fill(args, database)
        conf.set_override('port', 0, 'kronos_exporter')
        server, _thread = exporter.serve(conf)
        url = 'http://{}:{}/metrics'.format(*server.server_address[:2])
        session = requests.Session()
        found = list(parser.text_string_to_metric_families(session.get(url).text))
        taken = _times(lambda: session.get(url), args.scrapes)
        alone = _times(_from_memory(found), args.scrapes)
        server.shutdown()
        server.server_close()
    series = sum(len(family.samples) for family in found)
    most = SERIES + SERIES_A_HOST * args.hosts
    return report.Report(
        tables=(report.Table('milliseconds', ('answer', 'series', 'p50', 'slowest', 'CPU'), [
            ('kronos-exporter', series, *taken),
            ('the same series, from memory', series, *alone)]),),
        failures=(*([f'the slowest answer took {taken[1]:.0f} ms, target {1000 * SECONDS:.0f}']
                    if taken[1] > 1000 * SECONDS else []),
                  *([f'{series} series, target fewer than {most}'] if series >= most else [])))


def _times(work, count):
    """Return (median, maximum, mean CPU time) of ``count`` calls, in milliseconds. A first call,
    which reads data that is then cached, is not counted."""
    work()
    taken, processor = [], time.process_time()
    for _time in range(count):
        begun = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - begun))
    processor = 1000 * (time.process_time() - processor) / count
    return statistics.median(taken), max(taken), processor


def _from_memory(families):
    """Print the families from memory: no exporter that uses prometheus_client can be faster."""
    import prometheus_client

    class Kept:
        def describe(self):
            return ()

        def collect(self):
            return families

    registry = prometheus_client.CollectorRegistry()
    registry.register(Kept())
    return lambda: prometheus_client.generate_latest(registry)
