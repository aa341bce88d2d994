"""``[kronos_nova]``: the connection to Nova's public API and to placement, for the daemons and
commands of Kronos that do not run inside Nova's services."""

from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova.conf import urls

GROUP = cfg.OptGroup('kronos_nova', title='Nova API', help="""
Connection of ``kronos-engine``, ``kronos-executor`` and ``kronos-record`` to Nova's public API and
to placement, with the options of keystoneauth. Kronos inside Nova's own services needs this
connection only for ``[kronos_executor] masakari``.
""")

OPTS = [
    cfg.StrOpt('region_name', help="""
Name of the region whose Nova and placement Kronos uses.

By default, the only region of keystone's service catalogue.

Set it where the catalogue has several regions.

Related options: ``[kronos_api] cloud_name``.
"""),
    cfg.ListOpt('valid_interfaces', default=['internal', 'public'], help="""
Interfaces (kinds of endpoints in keystone's service catalogue) that Kronos may use, in order of
preference.

By default, ``internal``, or ``public`` where the catalogue has no internal endpoint.

Change it where the daemons of Kronos can only reach endpoints of another interface.

Related options: ``endpoint_override``.
"""),
    urls.url_opt('endpoint_override', help="""
URL of Nova's API, such as ``http://controller:8774/v2.1``.

By default, the URL in keystone's service catalogue.

Set it where the daemons of Kronos cannot reach the URL in the catalogue.

Related options: ``valid_interfaces``.
"""),
    urls.url_opt('placement_endpoint_override', help="""
URL of the placement API, such as ``http://controller:8778``.

By default, the URL in keystone's service catalogue.

Set it where the daemons of Kronos cannot reach the URL in the catalogue.

Related options: ``valid_interfaces``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def register_login_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of keystoneauth, which every connection to Nova needs. A repeated call
    changes nothing."""
    # Imported late: it takes a fifth of the time of a command, and few commands use it.
    from keystoneauth1 import loading
    loading.register_auth_conf_options(conf, GROUP.name)
    loading.register_session_conf_options(conf, GROUP.name)
    # Without a timeout, a request may wait for ever.
    conf.set_default('timeout', 60, group=GROUP.name)


def list_opts() -> Sequence[cfg.Opt]:
    from keystoneauth1 import loading  # imported late, as above
    return (OPTS + loading.get_auth_common_conf_options() + loading.get_session_conf_options() +
            loading.get_auth_plugin_conf_options('password'))
