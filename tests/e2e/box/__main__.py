"""Start a box by hand, or end one.

    python -m tests.e2e.box start [--computes N] [--kronos] ...   until Ctrl-C
    python -m tests.e2e.box start --detach                        until stop
    python -m tests.e2e.box stop ROOT
"""

import argparse
import json
import pathlib
import signal
import sys

from tests.e2e.box import Cloud
from tests.e2e.box import Settings
from tests.e2e.box import processes
from tests.e2e.box.settings import BoxError


def parser():
    top = argparse.ArgumentParser(prog='python -m tests.e2e.box')
    commands = top.add_subparsers(dest='command', required=True)
    start = commands.add_parser('start', help='start a cloud and leave it running')
    start.add_argument('--computes', type=int, default=6)
    start.add_argument('--driver', choices=['fake', 'libvirt'], default='fake',
                       help='hypervisors that are made up, or QEMU under libvirt')
    start.add_argument('--storage', choices=['local', 'shared'], default='local',
                       help='where instances are with --driver libvirt: on disks of each host, or '
                            'on a folder that the hosts share')
    start.add_argument('--conductors', type=int, default=1)
    start.add_argument('--conductor-workers', type=int, default=2)
    start.add_argument('--concurrency', choices=['auto', 'threading', 'eventlet'], default='auto')
    start.add_argument('--keystone', action='store_true', help='keystone, not a fixed token')
    start.add_argument('--kronos', action='store_true', help='load the plugin, and watch it: '
                       'kronos-exporter, its alerts, and an Alertmanager')
    start.add_argument('--nova-conf', action='append', default=[], metavar='SECTION.OPTION=VALUE',
                       help='a further option of nova.conf; may be repeated')
    start.add_argument('--migration-seconds', type=float, default=3.0)
    start.add_argument('--trace', type=pathlib.Path,
                       help='an .npz with loads in percent to play, in place of synthetic days')
    start.add_argument('--day-seconds', type=float, default=600.0,
                       help='seconds in which a day of load passes')
    start.add_argument('--root', type=pathlib.Path, help='folder for its files')
    start.add_argument('--keep', action='store_true', help='leave the files after the end')
    start.add_argument('--detach', action='store_true',
                       help='return when it runs; end it with "stop"')
    stop = commands.add_parser('stop', help='end a cloud and delete its files')
    stop.add_argument('root', type=pathlib.Path)
    stop.add_argument('--keep', action='store_true', help='leave the files')
    return top


def settings(arguments):
    conf = {}
    for text in arguments.nova_conf:
        name, _equals, value = text.partition('=')
        section, _dot, option = name.partition('.')
        conf.setdefault(section, {})[option] = value
    plain = ('computes', 'driver', 'storage', 'conductors', 'conductor_workers', 'concurrency',
             'kronos', 'keystone', 'migration_seconds', 'trace', 'day_seconds', 'root', 'keep')
    return Settings(nova_conf=conf, alerting=arguments.kronos,
                    **{name: getattr(arguments, name) for name in plain})


def start(arguments):
    cloud = Cloud(settings(arguments), progress=lambda text: print(text, flush=True))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cloud.start()
        print(json.dumps(cloud.addresses(), indent=2), flush=True)
        if arguments.detach:
            return cloud.release()
        signal.pause()
    except KeyboardInterrupt:
        pass
    cloud.stop()


def main():
    arguments = parser().parse_args()
    try:
        if arguments.command == 'start':
            start(arguments)
        else:
            processes.check(arguments.root)
            processes.stop_recorded(arguments.root)
            if not arguments.keep:
                processes.remove(arguments.root)
    except BoxError as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
