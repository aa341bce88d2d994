"""``[kronos_api]``: the HTTP API."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_api', title='HTTP API', help="""
``kronos-api`` reads the control database and answers over HTTP, to clients with a token of keystone
and the right role. Any number may run behind a load balancer. ``[keystone_authtoken]`` says how it
asks keystone, as for every service of OpenStack; ``[oslo_middleware]`` has the rest, above all
``enable_proxy_headers_parsing`` where a proxy ends TLS.
""")

OPTS = [
    cfg.PortOpt('port', default=9790, help="""
TCP port at which ``kronos-api`` listens. Change it where something else has it. A web server that
loads ``kronos_nova.cmd.wsgi`` itself has its own.
"""),
    cfg.HostAddressOpt('address', default='127.0.0.1', help="""
Address at which ``port`` listens. It speaks HTTP: let a proxy that ends TLS stand before it where
tokens cross a network.
"""),
    cfg.IntOpt('threads', default=8, min=1, help="""
How many requests are answered at the same time; each may hold a connection to the control database.
Beside them two of those that take seconds are: drains, which read the cloud first, and snapshots. A
third of those is refused with 503 and asked to come back.
"""),
    cfg.IntOpt('listeners', default=128, min=1, help="""
How many may listen to events at the same time; others are refused with 429. Each has a thread that
waits, beside ``threads``, but no connection to the control database: that is read once a second for
all of them together, and not at all without listeners. A web server that loads
``kronos_nova.cmd.wsgi`` itself must have more threads in a process than this, or no other request
is answered while so many listen.
"""),
    cfg.StrOpt('cloud_name', help="""
Name of this cloud in the header of the page and in "GET /v1/status".

By default, the ``region_name`` of ``[kronos_nova]`` is used, and no name where there is none. Set
it where operators look after several clouds, such as ``production, Vienna``.
"""),
    cfg.StrOpt('snapshots_path', help="""
Folder of the snapshots that ``kronos-api`` lists, gives away and replays: one folder for each, as
``kronos-record`` writes it, for instance by a timer. They have names and metadata of all servers:
only operators may download one. Not set: there are none.
"""),
    cfg.IntOpt('replay_seconds', default=60, min=1, help="""
Seconds that a replay of a snapshot may take, for which its client waits. One runs at a time, in
a process of its own and with a low priority. Keep it below what a proxy waits for an answer.
"""),
    cfg.IntOpt('replay_memory', default=2048, min=256, help="""
Address space in MiB that a replay may use; 30,000 servers need about half a GiB.
"""),
    cfg.BoolOpt('password_login', default=True, help="""
Whether the page takes user names and passwords: ``kronos-api`` then asks keystone for a token, at
the ``auth_url`` of ``[keystone_authtoken]``. Otherwise, or where keystone wants more than a
password, people paste a token that they got elsewhere ("openstack token issue").
"""),
    cfg.IntOpt('login_tries', default=5, min=0, help="""
Wrong passwords after which logins of the page are refused for ``login_lockout`` seconds.

By default, the fifth wrong password of one user from one address locks that user out at that
address; four times as many of one address lock the address out, ten times as many of one user from
anywhere lock the user out. Raise it where many people share the address of a proxy that does not
report theirs (``[oslo_middleware] enable_proxy_headers_parsing``). 0 sets no limit. Each process
counts for itself, and keystone's own limits hold in addition.
"""),
    cfg.IntOpt('login_lockout', default=300, min=1, help="""
Seconds for which a wrong password counts, and for which logins are refused after
``login_tries`` of them.

Raise it where passwords are attacked; lower it where people lock themselves out too often.
"""),
    cfg.StrOpt('policy_file', default='kronos-policy.yaml', help="""
File of rules for oslo.policy, beside nova.conf or an absolute path; it is read again when it
changes. Without one the defaults hold: the role ``admin`` may do everything, ``kronos_operator``
all but set levels, ``kronos_reader`` and a reader of the system may look. Nova's own policy file is
not used.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
