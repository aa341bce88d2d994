"""``[kronos_api]``: the HTTP API."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_api', title='HTTP API', help="""
``kronos-api`` reads the control database and answers over HTTP, to clients with a token of keystone
and the right role. Any number may run behind a load balancer. ``[keystone_authtoken]`` has the
options of its connection to keystone, as in every service of OpenStack. Where a proxy ends TLS, set
``[oslo_middleware] enable_proxy_headers_parsing``.
""")

OPTS = [
    cfg.PortOpt('port', default=9790, help="""
TCP port at which ``kronos-api`` listens. A web server that loads ``kronos_nova.cmd.wsgi`` has a
port of its own.

By default, 9790.

Change it where another program has this port.

Related options: ``address``.
"""),
    cfg.HostAddressOpt('address', default='127.0.0.1', help="""
Address at which ``port`` listens. ``kronos-api`` speaks HTTP without TLS.

By default, only programs on the same host can connect.

Change it where a proxy on another host ends TLS. Never let tokens cross a network without TLS.

Related options: ``port``.
"""),
    cfg.IntOpt('threads', default=8, min=1, help="""
Maximum number of requests that are answered at the same time. Each request may use a connection to
the control database. Two slow operations, such as drains and snapshots, may run in addition; a
third slow operation is refused with 503 and a time to try again.

By default, eight.

Raise it where many people and programs ask at once and answers wait. Lower it where the control
database has few connections left.

Related options: ``listeners``.
"""),
    cfg.IntOpt('listeners', default=128, min=1, help="""
Maximum number of clients that listen to events at the same time; further clients are refused with
429. Each listening client takes a thread in addition to ``threads``, but no connection to the
control database, which is read once a second for all of these clients.

By default, 128.

Raise it where more pages are open at a time. Lower it to save the memory of threads. A web server
that loads ``kronos_nova.cmd.wsgi`` must have more threads in a process than this number; otherwise
no other request is answered while this many clients listen.

Related options: ``threads``.
"""),
    cfg.StrOpt('cloud_name', help="""
Name of this cloud in the header of the page and in "GET /v1/status".

By default, the ``region_name`` of ``[kronos_nova]`` is used, and no name where there is none.

Set it where operators look after several clouds, such as ``production, Vienna``.

Related options: ``[kronos_nova] region_name``.
"""),
    cfg.StrOpt('snapshots_path', help="""
Folder of the snapshots that ``kronos-api`` lists, offers for download and replays. Each snapshot is
a folder in it, as ``kronos-record`` writes it, for instance by a timer. Snapshots have names and
metadata of all servers, so that only operators may download one.

By default, there is no folder and the list is empty.

Set it where plans should be replayed from the page.

Related options: ``replay_seconds``, ``replay_memory``.
"""),
    cfg.IntOpt('replay_seconds', default=60, min=1, help="""
Seconds that a replay of a snapshot may take. Its client waits meanwhile. One replay runs at a time,
in a process of its own with a low priority.

By default, a minute.

Raise it for large clouds, but keep it below the time that a proxy waits for an answer. Lower it
where replays take processors from other services.

Related options: ``snapshots_path``, ``replay_memory``.
"""),
    cfg.IntOpt('replay_memory', default=2048, min=256, help="""
Maximum address space, in MiB, of the process that replays a snapshot.

By default, 2048. A snapshot of 30,000 servers needs about 512.

Raise it where a replay is refused because it needs more. Lower it where the host is short of
memory.

Related options: ``snapshots_path``, ``replay_seconds``.
"""),
    cfg.BoolOpt('password_login', default=True, help="""
Whether people can log in to the page with a user name and a password. ``kronos-api`` then requests
a token from keystone, at the ``auth_url`` of ``[keystone_authtoken]``.

By default, they can.

Turn it off where keystone requires more than a password, or where passwords must not pass through
``kronos-api``. People then paste a token ("openstack token issue").

Related options: ``login_tries``, ``login_lockout``.
"""),
    cfg.IntOpt('login_tries', default=5, min=0, help="""
Number of wrong passwords after which logins of the page are refused for ``login_lockout`` seconds.

By default, the fifth wrong password of one user from one address locks that user out at that
address. Four times as many from one address lock the address out, and ten times as many of one user
from all addresses lock the user out. 0 sets no limit. Each process counts for itself, and
keystone's own limits hold in addition.

Raise it where many people use the page through one proxy that does not report their addresses
(``[oslo_middleware] enable_proxy_headers_parsing``). Lower it where passwords are attacked.

Related options: ``login_lockout``, ``password_login``.
"""),
    cfg.IntOpt('login_lockout', default=300, min=1, help="""
Seconds for which a wrong password counts, and for which logins are refused after ``login_tries`` of
them.

By default, five minutes.

Raise it where passwords are attacked. Lower it where people lock themselves out too often.

Related options: ``login_tries``.
"""),
    cfg.StrOpt('policy_file', default='kronos-policy.yaml', help="""
Path of the file with the policy rules of the API (oslo.policy), absolute or relative to the folder
of nova.conf. The file is read again when it changes. Nova's own policy file is not used.

By default, the file need not exist. Without it the role ``admin`` may do everything,
``kronos_operator`` everything except setting levels, and ``kronos_reader`` and a reader of the
system may read.

Change it where the file has another name or place.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
