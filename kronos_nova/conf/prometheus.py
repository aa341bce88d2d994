"""``[kronos_prometheus]``: the Prometheus that has the loads of hosts and instances."""

from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova.conf import urls

GROUP = cfg.OptGroup('kronos_prometheus', title='Metrics', help="""
Source of the load of hosts and instances: Prometheus, or another program with the HTTP API of
Prometheus (Thanos, Mimir, VictoriaMetrics).
""")

OPTS = [
    urls.url_opt('url', default='http://127.0.0.1:9090', help="""
Base URL of the Prometheus HTTP API: ``http://`` or ``https://``, host, port, and a path prefix if
it has one (``https://metrics.example.com/prometheus``). It has no ``/api/v1``, which Kronos adds,
and no credentials, which have options of their own.

By default, a Prometheus on the same host.

Set it to your Prometheus, Thanos, Mimir or VictoriaMetrics.

Related options: ``bearer_token_file``, ``username``, ``auth_section``, ``ca_file``, ``tenant``.
"""),
    cfg.FloatOpt('timeout', default=10.0, min=0.1, help="""
Seconds that one answer may take, from looking up the name in ``url`` to the last byte. If it takes
longer, the connection is closed and the query counts as failed.

By default, ten seconds.

Raise it where the queries of the policies are slow; a query over thousands of hosts should still
take a second or two. Lower it where a Prometheus that hangs should delay a cycle less.

Related options: ``total_timeout``, ``max_retries``.
"""),
    cfg.FloatOpt('total_timeout', default=120.0, min=1.0, help="""
Seconds that the answers to all queries of one cycle may take together, repeated ones included.
Later queries count as failed, so that a slow Prometheus cannot keep a cycle from emptying hosts and
repairing server groups.

By default, two minutes.

Raise it where many policies have slow queries. An initial value is ``timeout`` times the number of
queries, and at least 60. Lower it where other work of a cycle should not wait as long.

Related options: ``timeout``, ``[kronos] cycle_timeout``.
"""),
    cfg.IntOpt('max_answer_mib', default=64, min=1, help="""
Size in MiB above which an answer is dropped unread and the query counts as failed. The profile of
30,000 instances is about 10 MiB. A much larger answer is usually that of a query without an
aggregation.

By default, 64 MiB.

Raise it for clouds of more than 100,000 instances. Lower it where controllers are short of memory.
"""),
    cfg.IntOpt('max_retries', default=3, min=0, help="""
Number of times that a query is sent again, with growing pauses, if Prometheus is busy or does not
answer. After the last try, the cycle continues without the answer. A query that is wrong or not
permitted is not sent again.

By default, three.

Raise it where Prometheus is behind a proxy that refuses single requests. Lower it where a cycle
should not wait as long.

Related options: ``timeout``, ``total_timeout``.
"""),
    cfg.StrOpt('bearer_token', secret=True, help="""
Token for the ``Authorization: Bearer`` header.

By default, no token is sent.

Set it where a proxy asks for a token that does not expire. For a token that expires, use
``bearer_token_file``.

Related options: ``bearer_token_file``.
"""),
    cfg.StrOpt('bearer_token_file', help="""
File with a token for the ``Authorization: Bearer`` header. The file is read for every request, so
that a renewed token is used without a restart. The option must not be set together with
``bearer_token`` or ``username``.

By default, no token is sent.

Set it where a proxy asks for a token that expires.

Related options: ``bearer_token``, ``username``.
"""),
    cfg.StrOpt('username', help="""
User name for basic authentication at a reverse proxy in front of Prometheus.

By default, no user name is sent.

Set it where a proxy asks for a user name and a password.

Related options: ``password``.
"""),
    cfg.StrOpt('password', secret=True, help="""
Password of ``username``.

By default, no password is sent.

Set it together with ``username``.

Related options: ``username``.
"""),
    cfg.StrOpt('auth_section', help="""
Group of this file with keystone credentials, for a Prometheus behind keystone, such as Aetos. The
group has the options of keystoneauth (``auth_type``, ``auth_url``, ``username``, ``password``,
``project_name``, ``user_domain_name``, ``project_domain_name``; ``cafile``). The token of its user
is sent as ``X-Auth-Token``; the token is renewed before it expires, and when Prometheus refuses it.
The option must not be set together with ``bearer_token``, ``bearer_token_file`` or ``username``.
``ca_file`` is for ``url``; the certificate authority of keystone is ``cafile`` in the group.

By default, no token of keystone is sent.

Set it where keystone guards Prometheus. An initial value is ``placement``, whose user has the
service role in most installations. The user needs the admin or the service role: with another role
Aetos answers with the series of its own project alone. Aetos has no range queries, so that no
policy can have a ``forecast`` with it.

Related options: ``bearer_token``, ``bearer_token_file``, ``username``, ``ca_file``.
"""),
    cfg.StrOpt('ca_file', help="""
PEM file of the certificate authority that signed the certificate of ``url``. No option makes Kronos
trust any certificate.

By default, the authorities that the requests library trusts are used.

Set it where your own authority signed the certificate.

Related options: ``url``.
"""),
    cfg.StrOpt('cert_file', help="""
PEM file of the client certificate. It may contain the key.

By default, no client certificate is sent.

Set it where Prometheus asks for a client certificate.

Related options: ``key_file``.
"""),
    cfg.StrOpt('key_file', help="""
PEM file of the key of ``cert_file``.

By default, the key is expected in ``cert_file``.

Set it where the key is in a file of its own.

Related options: ``cert_file``.
"""),
    cfg.StrOpt('tenant', help="""
Name of the tenant whose series are read, where several tenants share a Mimir, a Cortex or a Thanos.
The name is sent in the header ``tenant_header``.

By default, no tenant is named.

Set it where the service refuses queries without a tenant.

Related options: ``tenant_header``.
"""),
    cfg.StrOpt('tenant_header', default='X-Scope-OrgID', help="""
HTTP header that names the tenant. It is only sent when ``tenant`` is set.

By default, ``X-Scope-OrgID``, as for Mimir and Cortex.

Set it to ``THANOS-TENANT`` for Thanos.

Related options: ``tenant``.
"""),
    cfg.IntOpt('smoothing_window', default=0, min=0, help="""
Seconds over which every load is averaged, so that a short peak is no reason to migrate. Each query
of a policy is sent as ``avg_over_time((query)[window:step])``.

By default, 0: queries are sent as they are, which is right where they average already
(``rate(...[15m])``).

Raise it where single peaks lead to plans; an initial value is 900. Prometheus evaluates the query
once for each step, so that a window of hundreds of steps is slow.

Related options: ``smoothing_step``.
"""),
    cfg.IntOpt('smoothing_step', default=60, min=1, help="""
Seconds between two points of the average of ``smoothing_window``.

By default, a minute.

Set it to the scrape interval of your Prometheus, or to a multiple of it. Raise it where queries are
slow.

Related options: ``smoothing_window``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
