"""``[kronos_api]``: the HTTP API."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_api', title='HTTP API', help="""
``kronos-api`` serves the HTTP API and the web page of Kronos from the control database. A client
needs a token of keystone, with a role that the rules in ``policy_file`` accept. Several processes
may run behind a load balancer. The options of the connection to keystone are in
``[keystone_authtoken]``, as for every service of OpenStack. Where a proxy terminates TLS, set
``[oslo_middleware] enable_proxy_headers_parsing``.
""")

OPTS = [
    cfg.PortOpt('port', default=9790, help="""
TCP port on which ``kronos-api`` listens. If a web server loads ``kronos_nova.cmd.wsgi`` instead,
the option has no effect.

By default, 9790.

Change it where another program uses this port.

Related options: ``address``.
"""),
    cfg.HostAddressOpt('address', default='127.0.0.1', help="""
IP address or host name on which ``kronos-api`` listens, at ``port``. ``kronos-api`` speaks HTTP
without TLS.

By default, ``127.0.0.1``: only programs on the same host can connect.

Change it where a proxy on another host terminates TLS. Never let tokens cross a network without
TLS.

Related options: ``port``.
"""),
    cfg.IntOpt('threads', default=8, min=1, help="""
Maximum number of requests that one process of ``kronos-api`` handles at the same time. Each of
these requests may use a connection to the control database. Slow operations, such as drains and
snapshots, have a limit of their own: two run at the same time, and a third is refused with status
503.

By default, eight.

Raise it where many clients send requests at the same time and have to wait. Lower it where the
control database has few connections left.

Related options: ``listeners``.
"""),
    cfg.IntOpt('listeners', default=128, min=1, help="""
Maximum number of clients that receive a stream of events at the same time. A further client is
refused with status 429. Each stream uses one thread in addition to ``threads``. Streams use no
connection of their own to the control database, because one thread reads all events once a second.

By default, 128.

Raise it where more users have the page open at the same time. Lower it to save the memory of the
threads. In a web server that loads ``kronos_nova.cmd.wsgi``, the number of threads in each process
has to be higher than this option. Otherwise streams may use all threads, and no other request is
answered.

Related options: ``threads``.
"""),
    cfg.StrOpt('cloud_name', help="""
Name of this cloud in the header of the page and in the answer to "GET /v1/status".

By default, the ``region_name`` of ``[kronos_nova]``. If that option is not set either, no name is
shown.

Set it where operators look after several clouds, such as ``production, Vienna``.

Related options: ``[kronos_nova] region_name``.
"""),
    cfg.StrOpt('snapshots_path', help="""
Folder with snapshots of the cloud. ``kronos-api`` lists the snapshots, offers them for download,
and replays them. Each snapshot is a subfolder that ``kronos-record`` has written, for instance by a
timer. Only operators may download a snapshot, because a snapshot contains the names and metadata of
all servers.

By default, there is no folder, and the list of snapshots is empty.

Set it where plans should be replayed from the web page of ``kronos-api``.

Related options: ``replay_seconds``, ``replay_memory``.
"""),
    cfg.IntOpt('replay_seconds', default=60, min=1, help="""
Maximum duration of the replay of a snapshot, in seconds. The HTTP request waits for the end of the
replay. One replay runs at a time, in a process with a low priority.

By default, a minute.

Raise it for large clouds, but keep it below the time that a proxy waits for an answer. Lower it
where replays take processor time from other services.

Related options: ``snapshots_path``, ``replay_memory``.
"""),
    cfg.IntOpt('replay_memory', default=2048, min=256, help="""
Maximum address space, in MiB, of the process that replays a snapshot.

By default, 2048 MiB. A snapshot of 30,000 servers needs about 512 MiB.

Raise it where a replay is refused because it needs more memory. Lower it where the host is short of
memory.

Related options: ``snapshots_path``, ``replay_seconds``.
"""),
    cfg.BoolOpt('password_login', default=True, help="""
Whether users can log in to the page with a user name and a password. ``kronos-api`` exchanges the
password for a token of keystone, at the ``auth_url`` of ``[keystone_authtoken]``.

By default, users can log in with a password.

Turn it off where keystone requires more than a password, or where passwords must not pass through
``kronos-api``. Users then paste a token into the page ("openstack token issue").

Related options: ``login_tries``, ``login_lockout``.
"""),
    cfg.IntOpt('login_tries', default=5, min=0, help="""
Number of wrong passwords after which ``kronos-api`` refuses further logins for ``login_lockout``
seconds. The number applies to one user at one client address. For all users at one address
together, the limit is four times this number. For one user at all addresses together, the limit is
ten times this number. Each process of ``kronos-api`` counts separately. keystone may have limits in
addition.

By default, five. 0 sets no limit.

Raise it where many people use the page through one proxy that does not report client addresses
(``[oslo_middleware] enable_proxy_headers_parsing``). Lower it where attackers try passwords.

Related options: ``login_lockout``, ``password_login``.
"""),
    cfg.IntOpt('login_lockout', default=300, min=1, help="""
Seconds for which ``kronos-api`` refuses the logins of a user or address after too many wrong
passwords (``login_tries``). The seconds run from the last wrong password. If no wrong password is
tried for this time, the count of wrong passwords begins again at 0.

By default, five minutes.

Raise it where attackers try passwords. Lower it where users lock themselves out too often.

Related options: ``login_tries``.
"""),
    cfg.StrOpt('policy_file', default='kronos-policy.yaml', help="""
Path of the file with the policy rules of the API (oslo.policy), absolute or relative to the folder
of nova.conf. The file is read again when it changes. Nova's own policy file is not used.

By default, ``kronos-policy.yaml``, which need not exist. Without the file, the role ``admin`` may
do everything. The role ``kronos_operator`` may do everything except set levels. The role
``kronos_reader``, and the role ``reader`` on the system scope, may read all data.

Change it where the file has another name or folder.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
