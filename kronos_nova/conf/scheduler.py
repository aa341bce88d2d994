"""``[kronos_scheduler]``: settings of the filter and the weigher in nova-scheduler."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_scheduler', title='Scheduler', help="""
Settings of KronosFilter and KronosWeigher. Each takes effect when ``[filter_scheduler]`` names it.
""")

OPTS = [
    cfg.FloatOpt('weight_multiplier', default=1.0, help="""
Multiplier of the weight that KronosWeigher gives to a host for its measured load, in addition to
the weights of Nova's own weighers.

By default, 1, as that of Nova's own weighers.

Raise it where the load of a host should count more than its free room when a new server is placed.
0 turns the weigher off; negative values prefer loaded hosts.

Related options: ``score_max_age``.
"""),
    cfg.IntOpt('score_max_age', default=900, min=1, help="""
Maximum age of a measured load in seconds. An older one is ignored; KronosWeigher has no preference
where the loads of all hosts are older.

By default, a quarter of an hour.

Set it to several times ``[kronos] evaluation_interval``. Lower it where load changes fast.

Related options: ``weight_multiplier``, ``[kronos] evaluation_interval``.
"""),
    cfg.BoolOpt('heed_rules', default=False, help="""
Whether Nova obeys the ``rules`` of ``[kronos] policies_file`` when it chooses a host for a boot, a
resize or an evacuation. KronosFilter then refuses hosts on which a rule forbids the server, and
KronosWeigher prefers hosts by the rules that are preferences. Some rules cannot be checked at that
time, and are obeyed by evaluations only: rules that select servers by ``name``, ``tag`` or
``metadata``, rules that name hosts by ``trait``, and rules about several servers that do not select
them by ``server_group``.

By default, off: only evaluations obey rules.

Turn it on where rules must hold from the start of a server; a server for which no host is left is
then not booted. The policies file and ``failure_domain_key`` have to be the same on the hosts of
nova-scheduler.

Related options: ``[kronos] policies_file``, ``[kronos] failure_domain_key``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
