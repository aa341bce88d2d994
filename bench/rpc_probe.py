"""Calls nova-conductor until its standard input ends; prints when and how long each call took.

    python -m bench.rpc_probe NOVA_CONF HOST
"""

import json
import sys
import threading
import time

from nova import config
from nova import context
from nova import objects
from nova.conductor import rpcapi
from oslo_versionedobjects import base

PAUSE = 0.01


def main(nova_conf, host):
    config.parse_args(['nova-compute', '--config-file', nova_conf])
    objects.register_all()
    conductor, admin = rpcapi.ConductorAPI(), context.get_admin_context()
    versions = base.obj_tree_get_versions('Service')
    ended = threading.Thread(target=sys.stdin.read, daemon=True)
    ended.start()
    calls = []
    while ended.is_alive():
        begun = time.time()
        conductor.object_class_action_versions(
            admin, 'Service', 'get_by_compute_host', versions, (host,), {})
        calls.append((begun, time.time() - begun))
        time.sleep(PAUSE)
    json.dump(calls, sys.stdout)


if __name__ == '__main__':
    main(*sys.argv[1:])
