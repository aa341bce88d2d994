"""A planning process whose inventory cannot be read.

    python -m tests.unit.engine.fakes_planning_worker --answers FD -- CONFIG_FILE

Each reading adds a line to ``readings`` beside the configuration: its process and the scopes.
"""

import pathlib
import sys

from oslo_config import cfg

from kronos_nova import conf as kronos_conf
from kronos_nova import exception
from kronos_nova.engine import planning_worker


class UnreadableCloud:
    def __init__(self, path):
        self.path = path

    def read(self, scopes=None, moves=()):
        with self.path.open('a') as file:
            file.write(f'{pathlib.Path("/proc/self").readlink()} {",".join(scopes)}\n')
        raise exception.InventoryError(problem='it cannot be read')

    def names_elsewhere(self, attribute, names):
        return set()


def main():
    args = planning_worker.parse('fakes_planning_worker', None)
    may_write = planning_worker.end_with_parent()
    [config] = args.arguments
    conf = cfg.ConfigOpts()
    kronos_conf.register_opts(conf)
    conf([f'--config-file={config}'])
    readings = pathlib.Path(config).with_name('readings')
    return planning_worker.serve(
        conf, lambda: planning_worker.Sources(inventory=UnreadableCloud(readings)), args.answers,
        may_write)


if __name__ == '__main__':
    sys.exit(main())
