"""A cloud in a box: stock OpenStack services as processes of one machine, loopback only.

    from tests.e2e import box

    with box.Cloud(box.Settings(computes=6)) as cloud:
        server = cloud.client.boot('web')
        ...
"""

import os

from tests.e2e.box.cloud import Cloud
from tests.e2e.box.settings import LOOPBACK
from tests.e2e.box.settings import Settings

# A proxy that this machine is configured with has no route to the services here.
for _name in ('no_proxy', 'NO_PROXY'):
    os.environ[_name] = ','.join(filter(None, (os.environ.get(_name), LOOPBACK, 'localhost')))

__all__ = ['Cloud', 'Settings']
