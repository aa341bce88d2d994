"""``[kronos_prometheus]``: where the load is read."""

from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova.conf import urls

GROUP = cfg.OptGroup('kronos_prometheus', title='Metrics', help="""
Where Kronos reads the load of hosts and instances: Prometheus or anything with its HTTP API
(Thanos, Mimir, VictoriaMetrics).
""")

OPTS = [
    urls.url_opt('url', default='http://127.0.0.1:9090', help="""
Base URL of the Prometheus HTTP API: ``http://`` or ``https://``, host, port, and a path prefix if
it has one (``https://metrics.example.com/prometheus``). Without ``/api/v1``, which Kronos adds, and
without credentials, which have options of their own.
"""),
    cfg.FloatOpt('timeout', default=10.0, min=0.1, help="""
Seconds that one answer may take, from looking up the name in ``url`` to the last byte; then the
connection is shut. Raise it where the policies' queries are slow; a query over thousands of hosts
should still take a second or two.
"""),
    cfg.FloatOpt('total_timeout', default=120.0, min=1.0, help="""
Seconds that the answers to all queries of one cycle may take together, repeated ones included. What
is not answered by then counts as failed, so that a Prometheus that is slow to fail cannot keep a
cycle from emptying hosts and repairing server groups. Raise it where many policies have slow
queries; a start value is ``timeout`` times the number of queries, at least 60.
"""),
    cfg.IntOpt('max_answer_mib', default=64, min=1, help="""
Size in MiB over which an answer is dropped unread and the query counts as failed. The profile of
30,000 instances is about 10 MiB; an answer much larger is usually a query that lacks an
aggregation.
"""),
    cfg.IntOpt('max_retries', default=3, min=0, help="""
How often a query that was refused or not answered is sent again, with growing pauses, before the
cycle goes on without it. A query that is wrong or not permitted is not sent again.
"""),
    cfg.StrOpt('bearer_token', secret=True, help="""
Token for the ``Authorization: Bearer`` header. Prefer ``bearer_token_file`` where tokens expire.
"""),
    cfg.StrOpt('bearer_token_file', help="""
File with that token. It is read again for every request, so a token that is renewed on disk is
followed without a restart. Not together with ``bearer_token`` or ``username``.
"""),
    cfg.StrOpt('username', help="""
User name for basic authentication, as a reverse proxy in front of Prometheus asks for it.
"""),
    cfg.StrOpt('password', secret=True, help="""
Password for ``username``.
"""),
    cfg.StrOpt('auth_section', help="""
Group of this file with keystone credentials, for a Prometheus behind keystone, such as Aetos.

Unset, no token of keystone is sent. Set it to the name of a group with the options of keystoneauth
(``auth_type``, ``auth_url``, ``username``, ``password``, ``project_name``, ``user_domain_name``,
``project_domain_name``; ``cafile``). The token of its user is then sent as ``X-Auth-Token``. It is
renewed before it expires, and when it is refused.

An initial value is ``placement``, whose user has the service role in most installations. The user
needs the admin or the service role: with another role Aetos answers with the series of its own
project alone.

Related options: ``ca_file`` is for ``url``; keystone's own is ``cafile`` in the group. Not together
with ``bearer_token``, ``bearer_token_file`` or ``username``. Aetos has no range queries, so no
policy can have a ``forecast`` with it.
"""),
    cfg.StrOpt('ca_file', help="""
PEM file of the certificate authority that signed the certificate of ``url``. Unset, the authorities
that the requests library trusts are used. There is no option to trust any certificate.
"""),
    cfg.StrOpt('cert_file', help="""
PEM file of the client certificate to show, where Prometheus wants one. It may contain the key.
"""),
    cfg.StrOpt('key_file', help="""
PEM file of the key of ``cert_file``, if it is not in there.
"""),
    cfg.StrOpt('tenant', help="""
Tenant whose series are read, where several share a Mimir, a Cortex or a Thanos. It goes into
``tenant_header``.
"""),
    cfg.StrOpt('tenant_header', default='X-Scope-OrgID', help="""
HTTP header that names the tenant: ``X-Scope-OrgID`` for Mimir and Cortex, ``THANOS-TENANT`` for
Thanos. Only sent when ``tenant`` is set.
"""),
    cfg.IntOpt('smoothing_window', default=0, min=0, help="""
Seconds over which every load is averaged, so that a short peak is no reason to migrate: each query
of a policy is sent as ``avg_over_time((query)[window:step])``. 0 sends the queries as they are,
which is right where they average already (``rate(...[15m])``). A start value is 900. Prometheus
evaluates the query once per step, so a window of hundreds of steps is slow.
"""),
    cfg.IntOpt('smoothing_step', default=60, min=1, help="""
Seconds between two points of the average of ``smoothing_window``. Your Prometheus' scrape interval
or a multiple of it.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
