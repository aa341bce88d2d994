"""Fetching of images from Glance with Nova's own credentials, if the request for a move has no
token.

Launchpad: no bug is known. Option: ``[kronos_fixes] image_credentials``.
"""

from typing import Any

import nova.conf
from keystoneauth1 import exceptions
from nova import service_auth
from nova.conf import service_token
from oslo_log import log as logging

from kronos_nova.plugin.nova_types import LiveMigrateData
from kronos_nova.plugin.nova_types import Mixin
from kronos_nova.plugin.nova_types import RequestContext

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)

EXPECTED = {
    'nova.compute.manager:ComputeManager.pre_live_migration':
        ('self', 'context', 'instance', 'disk', 'migrate_data'),
    'nova.compute.manager:ComputeManager.finish_resize':
        ('self', 'context', 'disk_info', 'image', 'instance', 'migration', 'request_spec'),
    'nova.service_auth:get_service_auth_plugin': ('conf_group',),
}


class FetchesImages(Mixin):
    """A mixin for the compute manager that fetches images with Nova's own credentials.

    A destination with local disks fetches base images and kernels from Glance. For this, Nova uses
    the token of the request for the move. Moves of Kronos have no token, because a token could
    expire before the move ends. If a request has no token, Nova uses its own credentials
    (``[service_user]``) for other services, but not for Glance. This class makes Nova use its own
    credentials for Glance as well.
    """

    def pre_live_migration(self, context: RequestContext, *args: Any,
                           **kwargs: Any) -> LiveMigrateData:
        return super().pre_live_migration(_as_nova(context), *args, **kwargs)

    def finish_resize(self, context: RequestContext, *args: Any, **kwargs: Any) -> Any:
        return super().finish_resize(_as_nova(context), *args, **kwargs)


def _as_nova(context: RequestContext) -> RequestContext:
    """Return ``context``. An admin's context without a token gets the credentials of Nova's service
    user."""
    if not CONF.kronos_fixes.image_credentials:
        return context
    if context.is_admin and not context.auth_token and context.user_auth_plugin is None:
        try:
            context.user_auth_plugin = service_auth.get_service_auth_plugin(
                service_token.SERVICE_USER_GROUP)
        except exceptions.AuthPluginException as error:
            LOG.warning('Images cannot be fetched from Glance with the credentials of '
                        '[service_user]: %s. Moves that need an image fail. Correct the options of '
                        '[service_user].', error)
    return context
