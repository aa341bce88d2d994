"""``[kronos_scheduler]``: settings of the filter and the weigher in nova-scheduler."""

from collections.abc import Sequence

from oslo_config import cfg

GROUP = cfg.OptGroup('kronos_scheduler', title='Scheduler', help="""
Settings of KronosFilter and KronosWeigher in nova-scheduler. The filter and the weigher are used
only if the options ``enabled_filters`` and ``weight_classes`` of ``[filter_scheduler]`` name them.
""")

OPTS = [
    cfg.FloatOpt('weight_multiplier', default=1.0, help="""
Multiplier of the weight that KronosWeigher gives to a host for its measured load. This weight is
added to the weights of Nova's own weighers. KronosWeigher prefers hosts with a low load. If the
policies have the mode ``pack``, it prefers hosts with a high load.

By default, 1, which is also the multiplier of most of Nova's own weighers.

Raise it where the measured load of a host should matter more than its free room when Nova chooses a
host for a server. 0 turns the weigher off, also for the preferences of ``heed_rules``. A negative
value reverses which load KronosWeigher prefers. Preferences keep their meaning.

Related options: ``score_max_age``, ``heed_rules``.
"""),
    cfg.IntOpt('score_max_age', default=900, min=1, help="""
Maximum age in seconds of the measured load of a host. KronosWeigher ignores an older load. If the
loads of all hosts are older, KronosWeigher prefers no host.

By default, a quarter of an hour.

Set it to several times ``[kronos] evaluation_interval``. Lower it where load changes fast.

Related options: ``weight_multiplier``, ``[kronos] evaluation_interval``.
"""),
    cfg.BoolOpt('heed_rules', default=False, help="""
Whether Nova obeys the ``rules`` of ``[kronos] policies_file`` when it chooses a host for a boot, a
resize or an evacuation. KronosFilter then refuses the hosts on which a strict rule forbids the
server. KronosWeigher prefers the hosts that fit the preferences among the rules. Some rules cannot
be checked when Nova chooses a host, and only evaluations obey these rules:

* rules that select servers by ``name``, ``tag`` or ``metadata``
* rules that select hosts by ``trait``
* rules about several servers, except rules that select the servers by ``server_group``

By default, off: only evaluations obey rules.

Turn it on where rules must hold from the start of a server. A server is then not booted if the
rules permit no host for the server. ``policies_file`` and ``failure_domain_key`` have to be the
same on every host with nova-scheduler.

Related options: ``[kronos] policies_file``, ``[kronos] failure_domain_key``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
