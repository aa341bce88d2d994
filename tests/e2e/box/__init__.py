"""A cloud in a box: stock OpenStack services as processes of one machine, loopback only.

    from tests.e2e import box

    with box.Cloud(box.Settings(computes=6)) as cloud:
        server = cloud.client.boot('web')
        ...
"""

from tests.e2e.box.cloud import Cloud
from tests.e2e.box.settings import Settings

__all__ = ['Cloud', 'Settings']
