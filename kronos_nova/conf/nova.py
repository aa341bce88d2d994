"""``[kronos_nova]``: how the daemons and commands outside Nova reach its public API."""

from keystoneauth1 import loading
from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_nova', title='Nova API', help="""
How ``kronos-engine``, ``kronos-executor``, ``kronos-record`` and ``kronos-test-config`` reach the
public API: keystoneauth's options. Not needed inside Nova.
""")

OPTS = [
    cfg.StrOpt('region_name', help="""
Region whose Nova and placement are used. Needed only where the catalogue has several.
"""),
]


def register_opts(conf):
    conf.register_group(GROUP)
    loading.register_auth_conf_options(conf, GROUP.name)
    loading.register_session_conf_options(conf, GROUP.name)
    conf.register_opts(OPTS, group=GROUP)


def list_opts():
    return (OPTS + loading.get_auth_common_conf_options() + loading.get_session_conf_options() +
            loading.get_auth_plugin_conf_options('password'))
