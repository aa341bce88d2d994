"""``[kronos_prometheus]``: the Prometheus that has the loads of hosts and instances."""

from collections.abc import Sequence

from oslo_config import cfg

from kronos_nova.conf import urls

GROUP = cfg.OptGroup('kronos_prometheus', title='Metrics', help="""
Source of the loads of hosts and instances: Prometheus, or another program with the HTTP API of
Prometheus (Thanos, Mimir, VictoriaMetrics).
""")

OPTS = [
    urls.url_opt('url', default='http://127.0.0.1:9090', help="""
Base URL of the Prometheus HTTP API: ``http://`` or ``https://``, host, port, and a path prefix if
the API has one (``https://metrics.example.com/prometheus``). Leave out ``/api/v1``, which Kronos
adds. Leave out credentials, for which there are separate options.

By default, a Prometheus on the same host, at port 9090.

Set it to the address of your Prometheus, Thanos, Mimir or VictoriaMetrics.

Related options: ``bearer_token_file``, ``username``, ``auth_section``, ``ca_file``, ``tenant``.
"""),
    cfg.FloatOpt('timeout', default=10.0, min=0.1, help="""
Maximum duration of one query to Prometheus, in seconds. The duration is measured from the look-up
of the host name in ``url`` to the last byte of the answer. If a query takes longer, its connection
is closed, and the query fails.

By default, ten seconds.

Raise it where the queries of the policies are slow; a query over thousands of hosts should take
only a second or two. Lower it where a Prometheus that hangs should delay an evaluation less.

Related options: ``total_timeout``, ``max_retries``.
"""),
    cfg.FloatOpt('total_timeout', default=120.0, min=1.0, help="""
Maximum duration of all queries of one evaluation together, in seconds, including repeated queries.
Once this time is used up, the remaining queries fail. The evaluation then continues without their
answers. A slow Prometheus therefore cannot delay the emptying of hosts and the repair of server
groups for longer.

By default, two minutes.

Raise it where many policies have slow queries. An initial value is ``timeout`` times the number of
queries, and at least 60. Lower it where an evaluation should not wait as long.

Related options: ``timeout``, ``[kronos] cycle_timeout``.
"""),
    cfg.IntOpt('max_answer_mib', default=64, min=1, help="""
Maximum size of the answer to a query, in MiB. A larger answer is discarded, and the query fails.
The answer with the loads of 30,000 instances has about 10 MiB. A much larger answer usually means
that a query lacks an aggregation.

By default, 64 MiB.

Raise it for clouds of more than 100,000 instances. Lower it where controllers are short of memory.
"""),
    cfg.IntOpt('max_retries', default=3, min=0, help="""
Number of times that a query is repeated, with growing pauses, while Prometheus is busy or does not
answer. After the last repetition, the evaluation continues without the answer. A query that
Prometheus rejects as wrong or not permitted is not repeated.

By default, three.

Raise it where a proxy in front of Prometheus sometimes refuses a request. Lower it where an
evaluation should not wait as long.

Related options: ``timeout``, ``total_timeout``.
"""),
    cfg.StrOpt('bearer_token', secret=True, help="""
Token for the header ``Authorization: Bearer`` of requests to Prometheus. The option must not be set
together with ``bearer_token_file``, ``username`` or ``auth_section``.

By default, no token is sent.

Set it where a proxy in front of Prometheus requires a token that does not expire. For a token that
expires, use ``bearer_token_file``.

Related options: ``bearer_token_file``.
"""),
    cfg.StrOpt('bearer_token_file', help="""
File with a token for the header ``Authorization: Bearer`` of requests to Prometheus. The file is
read for every request, so that a renewed token is used without a restart. The option must not be
set together with ``bearer_token``, ``username`` or ``auth_section``.

By default, no token is sent.

Set it where a proxy in front of Prometheus requires a token that expires.

Related options: ``bearer_token``, ``username``.
"""),
    cfg.StrOpt('username', help="""
User name for basic authentication at a reverse proxy in front of Prometheus.

By default, no user name is sent.

Set it where the proxy requires a user name and a password.

Related options: ``password``.
"""),
    cfg.StrOpt('password', secret=True, help="""
Password of the user ``username`` for basic authentication at a reverse proxy in front of
Prometheus.

By default, no password is sent.

Set it together with ``username``.

Related options: ``username``.
"""),
    cfg.StrOpt('auth_section', help="""
Name of the group in this configuration file that has keystone credentials for Prometheus. The group
is for a Prometheus that requires a token of keystone, such as Aetos. The group has the options of
keystoneauth (``auth_type``, ``auth_url``, ``username``, ``password``, ``project_name``,
``user_domain_name``, ``project_domain_name``, ``cafile``). Kronos sends the token of the group's
user as ``X-Auth-Token``. Kronos renews the token before the token expires, and when Prometheus
refuses the token. The option must not be set together with ``bearer_token``, ``bearer_token_file``
or ``username``. For the certificate of keystone, set ``cafile`` in the group; ``ca_file`` is only
for the certificate of ``url``.

By default, no token of keystone is sent.

Set it where Prometheus requires a token of keystone. An initial value is ``placement``: the user of
that group has the service role in most installations. The user needs the admin or the service role.
For a user with another role, Aetos returns only the series of the user's project. Aetos has no
range queries. With Aetos, therefore, no policy can have a ``forecast``.

Related options: ``bearer_token``, ``bearer_token_file``, ``username``, ``ca_file``.
"""),
    cfg.StrOpt('ca_file', help="""
PEM file with the certificates of the authorities that may sign the server certificate of ``url``.
Kronos always verifies the server certificate; there is no option to turn the verification off.

By default, the authorities that ``requests``, the HTTP library of Python, trusts.

Set it where your own authority signed the server certificate.

Related options: ``url``.
"""),
    cfg.StrOpt('cert_file', help="""
PEM file with the client certificate for requests to Prometheus. The file may also contain the
private key.

By default, no client certificate is sent.

Set it where Prometheus requires a client certificate.

Related options: ``key_file``.
"""),
    cfg.StrOpt('key_file', help="""
PEM file with the private key of the client certificate ``cert_file``.

By default, the key is expected in ``cert_file``.

Set it where the key is in a separate file.

Related options: ``cert_file``.
"""),
    cfg.StrOpt('tenant', help="""
Name of the tenant whose series Kronos reads. Mimir, Cortex and Thanos can store the series of
several tenants. Kronos sends the name in the header ``tenant_header``.

By default, no tenant is sent.

Set it where the service refuses queries without a tenant.

Related options: ``tenant_header``.
"""),
    cfg.StrOpt('tenant_header', default='X-Scope-OrgID', help="""
Name of the HTTP header in which ``tenant`` is sent. Without ``tenant``, the header is not sent.

By default, ``X-Scope-OrgID``, which Mimir and Cortex use.

Set it to ``THANOS-TENANT`` for Thanos.

Related options: ``tenant``.
"""),
    cfg.IntOpt('smoothing_window', default=0, min=0, help="""
Seconds over which each load is averaged, so that a short peak does not lead to migrations. With a
value above 0, each query of a policy is sent as
``avg_over_time((query)[window:step]) and (query)``, so that a host whose samples have ended has no
average.

By default, 0: queries are sent unchanged. This is right for queries that already contain an average
(``rate(...[15m])``).

Raise it where short peaks lead to plans; an initial value is 900. Prometheus evaluates the query
once for each step. A window of hundreds of steps is therefore slow.

Related options: ``smoothing_step``.
"""),
    cfg.IntOpt('smoothing_step', default=60, min=1, help="""
Seconds between two samples of a load in the average over ``smoothing_window``.

By default, a minute.

Set it to the scrape interval of your Prometheus, or to a multiple of that interval. Raise it where
the queries are slow.

Related options: ``smoothing_window``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
