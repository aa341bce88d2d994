"""``[kronos]``: the hosts that Kronos balances, the times at which Kronos plans, and the changes
that Kronos may make without approval."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_config import types

HINTS = ('project', 'project:balance', 'project:evacuate', 'flavor', 'flavor:balance',
         'flavor:evacuate', 'metadata', 'metadata:balance')

CHECKS = ('traits', 'aggregates', 'image', 'hypervisor', 'cpu', 'numa')

LEVELS = [
    ('off', 'Plan nothing.'),
    ('observe', 'Plan and report. Nothing is moved.'),
    ('approve', 'Plan, and move after "kronos-manage plan approve".'),
    ('auto', 'Plan and move.'),
]

GROUP = cfg.OptGroup('kronos', title='Rebalancing', help="""
Main options of Kronos: the hosts that Kronos balances, the times at which it plans, and the changes
that it makes without approval.
""")

OPTS = [
    cfg.StrOpt('automation', mutable=True, default='observe', choices=LEVELS, help="""
Level of automation: the steps that Kronos takes without approval by an operator. A level set by
"kronos-manage automation set" takes precedence over this option. Every worker uses the level of
that command within seconds, without a restart.

By default, ``observe``: plans are made and reported, and nothing is moved.

Read some days of reports first ("kronos-manage plan list"). Raise it to ``approve`` or ``auto``
when the plans contain the moves that you would make yourself.

Related options: ``max_automation``, ``aggregate_automation``, ``repair_automation``.
"""),
    cfg.StrOpt('max_automation', mutable=True, default='auto', choices=LEVELS, help="""
Highest level of automation that any aggregate can have. "kronos-manage automation set" refuses a
higher level. A drain that an operator requests ("kronos-manage host drain") is carried out at every
level. The value has to be the same on every controller.

By default, ``auto``: there is no limit.

Lower it to ``approve`` where plans must never be carried out without approval.

Related options: ``automation``, ``aggregate_automation``.
"""),
    cfg.StrOpt('run_in', default='conductor', choices=[
        ('conductor', 'nova-conductor plans, and carries out moves.'),
        ('daemons', 'kronos-engine plans, and kronos-executor carries out moves through Nova\'s '
                    'public API; Kronos in nova-conductor only makes live migrations atomic.'),
    ], help="""
Processes that make plans and carry out moves.

By default, ``conductor``: the processes of nova-conductor.

Set it to ``daemons`` to keep this work out of nova-conductor. Then run ``kronos-engine`` and
``kronos-executor``, and set their credentials in ``[kronos_nova]``. The value has to be the same
for nova-conductor and for the daemons.

Related options: ``[kronos_nova]``.
"""),
    cfg.DictOpt('aggregate_automation', mutable=True, default={}, help="""
Levels of ``automation`` for single aggregates, as ``name:level`` separated by commas, such as
``test:auto,database:approve``. The name ``_unassigned_`` stands for the hosts in no aggregate. A
level set by "kronos-manage automation set LEVEL --aggregate NAME" takes precedence. A level set by
that command without ``--aggregate`` can lower the levels of this option, but not raise them.

By default, all aggregates have the level of ``automation``.

Set it to try a level in one aggregate first. Set the level ``off`` to stop planning in an aggregate
that stays in ``aggregates``.

Related options: ``automation``, ``max_automation``, ``aggregates``.
"""),
    cfg.ListOpt('aggregates', default=[], help="""
Names of the host aggregates that Kronos balances, separated by commas. Each aggregate is planned
separately, and instances are only moved between hosts of the same aggregate.

By default, no aggregate. If ``include_unassigned_hosts`` is off as well, Kronos has nothing to
balance, and reports an error when it starts.

Add an aggregate once the policies are right for its hosts. To begin with a lower level in that
aggregate, use ``aggregate_automation``.

Related options: ``include_unassigned_hosts``, ``aggregate_automation``.
"""),
    cfg.BoolOpt('include_unassigned_hosts', default=False, help="""
Whether Kronos also balances the hosts that are in no aggregate. Together these hosts are treated
like one aggregate.

By default, off: instances on these hosts are not moved.

Turn it on in a small cloud without aggregates.

Related options: ``aggregates``.
"""),
    cfg.StrOpt('policies_file', default='/etc/nova/kronos-policies.yaml', help="""
Path of the policies file. The file contains the PromQL queries that measure the loads of hosts, the
thresholds above which load is spread, and the rules of operators. The file is read again when it
changes.

By default, ``/etc/nova/kronos-policies.yaml``.

Change it where the file is elsewhere. "kronos-test-config" checks the content of the file.

Related options: ``[kronos_prometheus] url``.
"""),
    cfg.IntOpt('evaluation_interval', mutable=True, default=300, min=1, max=604800, help="""
Seconds between two evaluations of an aggregate. An evaluation measures the load, and makes a plan
if moves are needed.

By default, five minutes.

Raise it where evaluations take much processor time of the controllers. Lower it where hosts with
high load should be relieved sooner, but not below the scrape interval of your Prometheus.

Related options: ``cooldown``, ``cycle_timeout``.
"""),
    cfg.IntOpt('aggregates_per_cycle', mutable=True, default=0, min=0, help="""
Maximum number of aggregates that one worker plans in one cycle. Other workers plan the remaining
aggregates at the same time. Aggregates with common hosts are always planned in the same cycle, even
above this maximum.

By default, 0: one worker plans all aggregates whose evaluation is due.

Set it where planning takes longer than reading the data of the cloud. Each additional worker reads
all of these data as well. Lower it towards 1 to use more workers.

Related options: ``cycle_timeout``.
"""),
    cfg.IntOpt('cycle_timeout', mutable=True, default=900, min=10, help="""
Maximum duration of a cycle, in seconds. In a cycle, a planning process reads the data of the cloud,
makes plans, and saves the plans. If a cycle takes longer, its process is killed, and an error is
logged. Each aggregate of the cycle is then planned again in a cycle of its own. The waits before
further attempts grow to an hour.

By default, a quarter of an hour.

Raise it where reading the data of the cloud takes minutes. An initial value is three times the
usual duration of a cycle, and more than ``[kronos_prometheus] total_timeout``. Lower it where a
process that hangs should be replaced sooner.

Related options: ``planning_time_limit``, ``[kronos_prometheus] total_timeout``.
"""),
    cfg.IntOpt('planner_niceness', mutable=True, default=19, min=0, max=19, help="""
Niceness (nice(1)) that a planning process adds to the niceness of the service that started it. With
19, the process also runs under the scheduling policy SCHED_IDLE of the kernel (sched(7)). The
planning process then uses only processor time that no other process needs, and does not delay the
RPCs of nova-conductor.

By default, 19.

Lower it where the processors of a controller are always busy, so that evaluations take minutes; an
initial value is 10.

Related options: ``cycle_timeout``.
"""),
    cfg.IntOpt('planner_idle_time', mutable=True, default=900, min=0, help="""
Seconds for which an idle planning process waits for its next cycle before it ends. A new process
would have to load Nova, which takes seconds of processor time, and read all data from placement
again. A waiting process uses no processor time. The memory of a waiting process is some 150 MiB,
plus 1 KiB for each instance.

By default, a quarter of an hour. With 0, a process ends after each cycle.

Raise it above ``evaluation_interval`` where that interval is longer; otherwise each process ends
before its next cycle. Lower it where controllers are short of memory.

Related options: ``evaluation_interval``, ``planner_max_memory``.
"""),
    cfg.IntOpt('planner_max_cycles', mutable=True, default=200, min=1, help="""
Number of cycles after which a planning process ends and a new process is started.

By default, 200.

Lower it if the memory of planning processes grows from cycle to cycle. There is no reason to raise
it.

Related options: ``planner_max_memory``.
"""),
    cfg.IntOpt('planner_max_memory', mutable=True, default=2048, min=64, help="""
Memory in MiB above which a planning process ends after a cycle. The next cycle then begins in a new
process.

By default, 2048 MiB.

Raise it where the planning process of a large cloud ends after each cycle. An initial value is
twice the memory of the process after a cycle. Lower it where controllers are short of memory.

Related options: ``planner_idle_time``, ``planner_max_cycles``.
"""),
    cfg.IntOpt('cooldown', mutable=True, default=600, min=0, help="""
Seconds for which no new plan is made for an aggregate after the end of its last plan. During this
time, the measured load adapts to the moves of the last plan.

By default, ten minutes.

Raise it above the longest window of ``rate()`` in the queries of your policies. Lower it where
further hosts often get a high load during the cooldown.

Related options: ``instance_cooldown``, ``spread_interval``.
"""),
    cfg.IntOpt('instance_cooldown', mutable=True, default=3600, min=0, help="""
Seconds for which an instance is not moved again, counted from the start of the plan that moves the
instance. If the move is abandoned before it is requested from Nova, this time ends, unless an
operator aborted the move.

By default, an hour.

Raise it where migrations disturb users. Lower it where load changes fast.

Related options: ``instance_cooldown_factor``, ``instance_cooldown_max``.
"""),
    cfg.IntOpt('instance_quarantine_seconds', mutable=True, default=86400, min=-1, help="""
Seconds for which an instance is in quarantine after a move of the instance has failed for good. An
instance in quarantine is not moved. If Nova refused to begin the migration, the instance is not put
in quarantine; see ``rejection_backoff_cycles``.

By default, a day. With -1, a quarantine lasts until an operator ends it ("kronos-manage quarantine
remove").

Raise it where failed migrations harm guests. Lower it where the causes of failures are soon
removed.

Related options: ``rejection_backoff_cycles``, ``[kronos_executor] max_retries``.
"""),
    cfg.BoolOpt('evacuate_disabled_hosts', mutable=True, default=False, help="""
Whether Kronos empties a host whose nova-compute service is disabled but up. Kronos live migrates
all instances off the host before load is balanced.

By default, off: disabled hosts keep their instances.

Turn it on where hosts are disabled only for maintenance.

Related options: ``reserve_hosts``.
"""),
    cfg.BoolOpt('enforce_hard_affinity', mutable=True, default=False, help="""
Whether Kronos repairs violations of ``affinity`` and ``anti-affinity`` server groups. Kronos moves
members of these groups before load is balanced.

By default, off: existing violations remain. No plan adds a violation.

Turn it on where evacuations or resizes have led to violations.

Related options: ``enforce_soft_affinity``.
"""),
    cfg.BoolOpt('enforce_soft_affinity', mutable=True, default=False, help="""
Whether Kronos repairs violations of ``soft-affinity`` and ``soft-anti-affinity`` server groups.
Kronos moves members of these groups before load is balanced.

By default, off: existing violations remain.

Turn it on where soft groups should comply with their policies whenever there is room.

Related options: ``enforce_hard_affinity``, ``soft_group_cost``.
"""),
    cfg.StrOpt('repair_rules', mutable=True, default='all', choices=[
        ('off', 'Repair no violations; moves for other reasons obey the rules.'),
        ('must', 'Repair violations of strict rules only.'),
        ('all', 'Repair violations of strict rules, and of preferences where that pays.'),
    ], help="""
Kinds of rules whose violations Kronos repairs: none, strict rules only, or strict rules and
preferences. The rules are defined in the policies file. Kronos repairs violations by moves, before
load is balanced. The option ``repair_automation`` sets the level of automation of repairs.

By default, ``all``: violations of strict rules and of preferences. A violation of a preference is
repaired only if the ``cost`` of its rule is higher than the cost of the move plus the imbalance
that the move adds.

Set it to ``off`` when you introduce rules in a cloud that violates them. Raise it to ``must`` and
then to ``all`` once the rules are right.

Related options: ``repair_automation``, ``max_rule_repairs_per_cycle``.
"""),
    cfg.StrOpt('repair_automation', mutable=True, choices=LEVELS, help="""
Level of automation of repairs. A repair is a move that ends a violation of ``rules``, or a move
after which the servers of a host can again restart elsewhere (``failover_hosts``). The command
"kronos-manage automation set --repairs" sets a level for one aggregate or for all aggregates, which
takes precedence over this option. The level of repairs is never higher than ``max_automation``. If
the level of an aggregate is ``off``, no repairs are planned for the aggregate.

By default, repairs have the level of their aggregate, and are part of the aggregate's plans. With a
different level, repairs get plans of their own, with the purpose ``repair``. If the level of
repairs is higher than the level of the aggregate, repairs are planned before all other moves. If
the level of repairs is lower, repairs are planned only once no other moves are needed.

Set it to ``approve`` where load may be balanced without approval, but an operator should approve
the moves that a new rule causes. Set it to ``auto``, with a lower level in ``automation``, where
only repairs may be made without approval.

Related options: ``repair_rules``, ``max_rule_repairs_per_cycle``, ``automation``.
"""),
    cfg.IntOpt('max_rule_repairs_per_cycle', mutable=True, default=0, min=0, help="""
Maximum number of moves that repair violations of ``rules``, in one plan.

By default, 0: there is no separate limit. ``max_migrations_per_cycle`` of the policies limits the
moves of a plan in any case.

Set it when a new rule affects many servers; an initial value is 2. Raise it once the repairs are as
you expect.

Related options: ``repair_rules``, ``repair_automation``.
"""),
    cfg.ListOpt('failure_domain_key', default=[], help="""
Metadata keys of host aggregates, whose values are the names of failure domains. A failure domain is
a part of the cloud that fails as a whole, such as a rack. Separate the keys by commas, and begin
with the key of the largest domains. With ``room, rack``, for example, each rack belongs to a room.
A host belongs to all failure domains in the metadata of its aggregates. If two aggregates of a host
have different values of a key, the value that comes first in alphabetical order is used.

By default, no key: Kronos knows no failure domains.

Set it where rules should keep servers inside a rack, outside a rack, or in different racks. The
option ``failover_domains`` needs these keys as well.

Example: ``failure_domain_key = room, rack``, with ``openstack aggregate set --property rack=r3``

Related options: ``policies_file``, ``failover_domains``.
"""),
    cfg.BoolOpt('restrict_to_az', mutable=True, default=False, help="""
Whether instances stay in their availability zone. If the option is on, no instance is moved to a
host in another availability zone.

By default, off: an instance may be moved to any host of its aggregate that Nova permits.

Turn it on where an aggregate spans several availability zones, and each zone should keep its
instances.

Related options: ``host_checks``.
"""),
    cfg.ListOpt('host_checks', mutable=True, default=list(CHECKS),
                item_type=types.String(choices=CHECKS), help="""
Requirements of servers that Kronos checks before it plans a move. Moves that Nova would refuse are
then not planned. Nova checks the moves of every plan in any case. The requirements are:

* ``traits``: required and forbidden traits of the flavor and the image
* ``aggregates``: the availability zone that a server is pinned to, and aggregates with the metadata
  ``trait:NAME=required`` (``[scheduler] enable_isolated_aggregate_filtering``)
* ``image``: architecture, hypervisor and hypervisor version that the image requires
* ``hypervisor``: the destination has the same hypervisor as the source, in the same or a newer
  version
* ``cpu``: the processors of the destination have all features of the source's processors; not
  checked if Nova knows the CPU model of the guest
* ``numa``: the destination has NUMA cells with free CPUs, memory and pages for a server that
  requires a NUMA topology

By default, all of these requirements are checked. Nova alone checks a requirement that is not in
the list.

Leave ``hypervisor`` out where ``[workarounds] skip_hypervisor_version_check_on_lm`` is set. Leave
``cpu`` out in any of these cases:

* ``[workarounds] skip_cpu_compare_on_dest`` is set
* guests are emulated (``virt_type = qemu``)
* guests have named CPU models (``cpu_mode = custom``), and ``run_in`` is ``daemons``: Kronos cannot
  read the CPU model of a guest through Nova's public API

Related options: ``rejection_backoff_cycles``, ``run_in``.
"""),
    cfg.StrOpt('spread_planner', mutable=True, default='spread', help="""
Planner that spreads load. ``spread`` searches for the best plan within the permitted number of
moves. ``greedy`` adds the best single move again and again. Other planners may be installed as
entry points of ``kronos_nova.planners``.

By default, ``spread``.

Set it to ``greedy`` where operators must be able to follow each decision of a plan.

Related options: ``pack_planner``, ``planning_time_limit``.
"""),
    cfg.StrOpt('pack_planner', mutable=True, default='pack', help="""
Planner that packs instances on few hosts, so that other hosts become empty. ``pack`` empties as
many hosts as possible within the permitted number of moves. ``ffd`` is the simple algorithm "first
fit decreasing". Other planners may be installed as entry points of ``kronos_nova.planners``.

By default, ``pack``.

Set it to ``ffd`` where operators must be able to follow each decision of a plan.

Related options: ``spread_planner``, ``planning_time_limit``.
"""),
    cfg.FloatOpt('planning_time_limit', mutable=True, default=10.0, min=0.1, help="""
Maximum duration of the planning of one aggregate, in seconds. When the time is over, the best plan
found so far is used. The report of the plan then has a warning that names this option. A plan that
is finished earlier does not depend on the speed of the controller.

Requests to Nova's scheduler about the moves are part of this time. If the search for a plan ends
too late, the requests may take another 40 percent of this time.

By default, ten seconds. On an idle processor, planning takes that long only with thousands of
hosts, or with nearly full hosts and a large permitted number of moves. A plan for a dozen hosts may
take six seconds if some are nearly full and ten moves or more are needed. On a busy controller,
planning takes several times as long.

Raise it where the warning appears. Lower it where controllers have little processor time for
planning.

Related options: ``cycle_timeout``.
"""),
    cfg.FloatOpt('overload_ceiling', mutable=True, default=0.95, min=0.0, max=1.0, help="""
Load (0 to 1) that no host may exceed in any policy while a plan is carried out. The limit does not
apply to a host that exceeded this load before the plan. When a disabled host is emptied, another
host may exceed this load if an instance has no other destination. Packing uses the
``capacity_threshold`` of each policy instead.

By default, 0.95.

Raise it where hosts work well at full load and plans find no destinations. Lower it where hosts
need a reserve for peaks of load.

Related options: ``policies_file``.
"""),
    cfg.FloatOpt('min_coverage', mutable=True, default=1.0, min=0.0, max=1.0, help="""
Fraction (0 to 1) of an aggregate's available hosts that must have a sample in the answer to a
policy's query. If fewer hosts have a sample, the evaluation has no data for the policy.

By default, 1: every host needs a sample. With a lower value, hosts without a sample are neither
sources nor destinations of moves.

Lower it in a large aggregate where some exporter is always down; an initial value is 0.9.

Related options: ``min_known_servers``, ``max_sample_age``.
"""),
    cfg.FloatOpt('min_known_servers', mutable=True, default=0.8, min=0.0, max=1.0, help="""
Fraction (0 to 1) of a host's running servers that must have a series in the answer to a policy's
``vm_profile_query``. With fewer series, the measured load of the host is ignored. No server is then
moved to the host, only drains move servers off the host, and reports name the host.

Servers with a series that recently left the host by a live migration count for the host too, so
that moves do not cause its load to be ignored. They do not count if less than half of the servers
on the host have a series.

The check is weaker if ``vm_profile_fallback`` of the policy is not ``skip``, because servers
without a series then have an estimated load. The load of a host is ignored only if none of its
servers has a series, while at least this fraction of the servers on other hosts have a series.

By default, 0.8. With 0 and ``skip``, no load is ignored because of missing series.

Raise it where missing series have led to wrong moves. Lower it where some servers never have a
series.

Related options: ``server_grace``, ``min_coverage``, ``no_return_window``.
"""),
    cfg.FloatOpt('profile_tolerance', mutable=True, default=0.1, min=0.0, help="""
Tolerance in the comparison of a host's measured load with the sum of its servers' measured loads. A
value of 1 is the capacity of the host. The loads contradict each other in two cases:

* The sum is more than 1.5 times the load of the host, plus the tolerance. The factor allows for
  servers and hosts that are measured at different times.
* The sum is 0, and the load of the host is above the tolerance.

If the loads contradict each other, the servers of the host are not moved to spread load. The load
of the host still limits moves to the host.

By default, 0.1.

Raise it where load changes faster than the averages in the queries; with 1, hardly any
contradiction is found. Lower it to notice sooner that the queries for hosts and for servers do not
fit together.

Related options: ``min_known_servers``.
"""),
    cfg.IntOpt('server_grace', mutable=True, default=600, min=0, help="""
Seconds for which a server needs no series in the answer to a policy's ``vm_profile_query``, counted
from the launch or the last live migration of the server.

By default, ten minutes.

Set it to the longest window of ``rate()`` in the policies' queries plus two scrape intervals. With
a lower value, ``min_known_servers`` can cause the load of a host with new servers to be ignored.

Related options: ``min_known_servers``.
"""),
    cfg.BoolOpt('accept_partial_metrics', mutable=True, default=False, help="""
Whether Kronos uses incomplete answers to its queries. Thanos marks an incomplete answer by warnings
that name the stores that did not answer. Prometheus marks an incomplete answer by warnings that
name the remote storage. VictoriaMetrics marks an incomplete answer as partial. The sums in an
incomplete answer may lack a part of the load, even if every host has a sample.

By default, off. If the answer about hosts is incomplete, the policy has no data. If the answer
about instances is incomplete, the policy's ``vm_profile_fallback`` is used.

Turn it on only where a store that never answers has no data that the policies need.

Related options: ``min_coverage``.
"""),
    cfg.FloatOpt('max_sample_age', mutable=True, default=300.0, min=1.0, help="""
Maximum age of a sample in seconds, by the timestamp of the sample. An older sample is ignored. If a
timestamp is more than this number of seconds in the future, the age of the sample is unknown; the
sample is used, and a warning is logged. Prometheus sets the timestamp to the time at which the
answer is computed. Old timestamps therefore show that a cache serves old answers, or that clocks
differ.

By default, five minutes.

Set it to several scrape intervals, and above the difference between the clocks of Prometheus and of
the controllers.

Related options: ``evaluation_interval``.
"""),
    cfg.IntOpt('stabilization_cycles', deprecated_name='hold_cycles', mutable=True, default=1,
               min=1, help="""
Number of successive evaluations that must find an aggregate imbalanced before its load is spread.
An aggregate is imbalanced if the imbalance of any policy is above the policy's threshold. Moves for
other reasons are not delayed: packing, relieving hosts above the ``high`` of a policy, emptying
disabled hosts, and repairing server groups and rules.

By default, 1: load is spread after the first evaluation that finds an imbalance.

Raise it where short peaks of load should not lead to moves; an initial value is 3.

Related options: ``evaluation_interval``, ``restraint``.
"""),
    cfg.IntOpt('spread_interval', mutable=True, default=0, min=0, max=31536000, help="""
Minimum number of seconds between two plans that spread the load of the same aggregate. Moves for
other reasons are delayed only by ``cooldown``: relieving hosts above the ``high`` of a policy,
emptying disabled hosts, and repairing server groups.

By default, 0: load is spread whenever there is an imbalance.

Set it where hosts with high load should be relieved immediately, but an even load can wait. With
21600, load is spread at most four times a day. The option is useful only for policies with
``high``; without ``high``, ``cooldown`` has the same effect.

Related options: ``cooldown``.
"""),
    cfg.FloatOpt('restraint', mutable=True, default=1.0, min=0.0, max=100.0, help="""
Reluctance to move instances in order to spread load (no unit). With 0, a plan spreads the present
load as evenly as the planner can. With a higher value, fewer moves are made. There are two kinds of
moves:

Needed moves are made if a policy's imbalance is above its threshold, by more than random
variation explains. They are the moves that bring the imbalance below the threshold with the least
memory to copy. The imbalance is computed from a predicted load. If ``restraint`` is 1, this is the
load of the next half hour; if it is 2, the load of the next hour. The prediction is made from the
loads of the instances in the last day.

Optional moves are made at any imbalance. They make it less likely that a host's load exceeds 0.9,
where servers lose processor time. An optional move is made only if it is expected to save servers
at least the processor time that its live migration costs, multiplied by ``restraint``.

By default, 1. Compared with 0, far fewer moves are made, and fewer hosts become full. No instance
returns within a day to a host that it left.

Raise it where migrations are expensive. Lower it to 0 where only an even load matters, such as in
tests.

The option has its full effect some hours after the first start of Kronos, when enough loads of
instances are known. A replay uses the load statistics in its snapshot.

Related options: ``stabilization_cycles``, ``min_gain``, ``no_return_window``,
``max_moves_per_instance_and_week``.
"""),
    cfg.FloatOpt('min_gain', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Smallest gain (0 to 1) for which a move is made to spread load. With ``restraint`` above 0, which is
the default, the gain of a move is the amount by which the move brings its two hosts closer to the
load that the plan aims at. With ``restraint`` set to 0, the gain is the decrease of the combined
imbalance. The combined imbalance is the sum of the imbalances of all policies, each multiplied by
the weight of its policy.

The planner ``spread`` checks the gain of each move. From plans of other planners, Kronos removes
the last moves until the average gain of the remaining moves is at least ``min_gain``.

By default, 0: every gain is sufficient.

Raise it where plans contain many moves that change little; an initial value is 0.005.

Related options: ``min_gain_per_gib``, ``min_gain_per_minute``, ``min_gain_per_failure``,
``restraint``.
"""),
    cfg.FloatOpt('min_gain_per_gib', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to ``min_gain`` for each GiB of memory that a move copies. A large instance is
then moved only for a large gain.

By default, 0: the memory of an instance does not matter.

Raise it where copying memory loads the network; an initial value is 0.0001.

Related options: ``min_gain``.
"""),
    cfg.FloatOpt('min_gain_per_minute', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to ``min_gain`` for each minute of the expected duration of a move. The
duration is predicted from earlier moves of the same instance. Without such moves, the duration is
predicted from the time that other instances needed for each GiB of memory. If earlier moves between
the same two hosts took longer than other moves, the predicted duration is longer.

By default, 0: the duration of a move does not matter.

Raise it where long migrations disturb users; an initial value is 0.0005.

Related options: ``min_gain``, ``experience_window``.
"""),
    cfg.FloatOpt('min_gain_per_failure', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to the ``min_gain`` of a move for each earlier move that failed for good. An
earlier move counts if it was a move of the same instance, or a move of any instance between the
same source and destination. If both apply, the amount is added twice. Only failures within
``experience_window`` are considered.

By default, 0: earlier failures do not matter.

Raise it where the same moves fail again and again; an initial value is 0.01.

Related options: ``min_gain``, ``experience_window``.
"""),
    cfg.IntOpt('experience_window', mutable=True, default=2592000, min=0, help="""
Seconds for which a move affects the expected costs of later moves, counted from the end of the
move. The duration and the result of the move are considered.

By default, 30 days.

Raise it where few moves are made. A value above ``moves_retention_days`` has no effect. Lower it
after hosts or networks were changed.

Related options: ``min_gain_per_minute``, ``min_gain_per_failure``, ``[kronos_database]
moves_retention_days``.
"""),
    cfg.FloatOpt('soft_group_cost', min=0.0, max=1.0, help="""
Cost (0 to 1) of a move that violates the policy of a ``soft-affinity`` or ``soft-anti-affinity``
server group. The cost is an amount of combined imbalance (see ``min_gain``). A plan that spreads
load has to gain at least this cost for each group member that is moved against the policy of the
group. If the moves of the plan gain less than their costs, Kronos removes the last moves until the
remaining moves gain enough.

By default, no cost is set. The policies of soft groups are then as strict as the policies of hard
groups, with one exception: "kronos-manage host drain" violates them if a host cannot be emptied
otherwise. If a cost is set, packing and the emptying of disabled hosts may violate the policies of
soft groups as well.

Set it where soft groups prevent hosts from being relieved or emptied; an initial value is 0.02.
Raise it where the policies of soft groups are more important than an even load.

Related options: ``enforce_soft_affinity``, ``min_gain``.
"""),
    cfg.FloatOpt('instance_cooldown_factor', mutable=True, default=2.0, min=1.0, max=100.0, help="""
Factor by which the cooldown of an instance grows with each further move of the instance. The first
cooldown is ``instance_cooldown``. An instance that is moved often therefore waits longer and longer
for the next move.

By default, 2: the cooldown doubles. With 1, the cooldown does not grow.

Raise it where single instances are moved too often. Lower it where a few instances cause most of
the load and have to be moved more often.

Related options: ``instance_cooldown``, ``instance_cooldown_max``.
"""),
    cfg.IntOpt('instance_cooldown_max', mutable=True, default=86400, min=0, help="""
Maximum cooldown of an instance, in seconds. Each further move makes the cooldown of an instance
longer, by ``instance_cooldown_factor``. If an instance is not moved for ``instance_cooldown_max``
seconds after the end of its last cooldown, its next cooldown is ``instance_cooldown`` again.

By default, a day.

Raise it where single instances are moved too often. Lower it where a few instances cause most of
the load and have to be moved more often.

Related options: ``instance_cooldown``, ``instance_cooldown_factor``.
"""),
    cfg.IntOpt('rejection_backoff_cycles', deprecated_name='refusal_rest_cycles', mutable=True,
               default=12, min=0, max=1000, help="""
Number of evaluation intervals for which an instance is not moved after Nova's scheduler has
rejected it. Kronos asks the scheduler about the moves of a plan before the moves are made. An
instance counts as rejected once the scheduler has refused three hosts for the instance. There is
one exception: if only some hosts of the aggregate, at most ten, are possible destinations of the
instance, the scheduler must have refused all of these hosts. The cause of a refusal (pinned CPUs, a
device, a trait) seldom changes within minutes, and each question costs processor time of the
scheduler.

The number has a second effect. If Nova refuses to begin a move of a plan, the instance and similar
instances are not moved to that destination for this number of intervals. Similar instances have the
same flavor, image, project, requirements and server groups. "kronos-manage refusal list" shows
refused instances with Nova's reason.

By default, 12: an hour with the default ``evaluation_interval``. With 0, the scheduler is asked
again in the next cycle.

Raise it where the scheduler is busy. Lower it where refused instances should be tried again soon
after room was made for them.

Related options: ``evaluation_interval``, ``instance_quarantine_seconds``, ``host_checks``.
"""),
    cfg.IntOpt('no_return_window', deprecated_name='return_window', mutable=True, default=21600,
               min=0, help="""
Seconds for which an instance is not moved back to a host that it has left. Live migrations by
Kronos and by others count equally. Moves by which Kronos emptied a host do not count. An instance
that moves back and forth is a sign of two rules that conflict.

While ``restraint`` is above 0, which is the default, the time is at least a day. Lower values then
have no effect.

By default, six hours, which means a day with the default ``restraint``. If both options are 0, an
instance may return at any time.

Raise it above a day where instances move back and forth, but not above the time for which Nova
keeps migrations. Lower it where ``restraint`` is 0 and an aggregate has few hosts.

Related options: ``restraint``, ``instance_cooldown``.
"""),
    cfg.IntOpt('max_moves_per_project', mutable=True, default=0, min=0, help="""
Maximum number of moves of one project's instances in one plan. Moves that empty a disabled host are
not counted.

By default, 0: there is no limit.

Set it where not all servers of a project should be moved at the same time; an initial value is half
of ``max_migrations_per_cycle``. Raise it where hosts keep a high load because of this limit. Lower
it where users notice migrations.

Related options: ``max_moves_per_project_and_day``.
"""),
    cfg.IntOpt('max_moves_per_project_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves of one project's instances within 24 hours, in all aggregates together. The
moves of a plan that waits for approval are counted only once the plan starts. Moves that empty a
disabled host are not counted.

By default, 0: there is no limit.

Set it where users notice migrations. Raise it where hosts keep a high load because of this limit.

Related options: ``max_moves_per_project``.
"""),
    cfg.IntOpt('max_moves_per_cause_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves within 24 hours that one instance may cause by its load. If a move spreads
load or relieves a host, its cause is the instance with the largest load on the source host. Only
moves of other instances are counted, not moves of the cause itself. Once the limit is reached, no
other instance is moved off the host of the cause because of load. Moves that empty a disabled host
are not counted.

By default, 0: there is no limit.

Set it where one instance with a changing load leads to moves of its neighbours all day; an initial
value is 10.

Related options: ``max_moves_per_instance_and_day``.
"""),
    cfg.IntOpt('max_moves_per_instance_and_week', mutable=True, default=4, min=0, help="""
Maximum number of moves of one instance within seven times 24 hours. Moves that empty a disabled
host are not limited. ``instance_cooldown`` only makes further moves of an instance rarer, while
this option is a strict limit.

By default, four. With 0, there is no limit.

Raise it where a few instances cause most of the load. Lower it where users notice migrations.

Related options: ``max_moves_per_instance_and_day``, ``instance_cooldown``.
"""),
    cfg.IntOpt('max_moves_per_instance_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves of one instance within 24 hours. Moves that empty a disabled host are not
limited.

By default, 0: there is no limit.

Set it where users notice migrations; an initial value is 1.

Related options: ``max_moves_per_instance_and_week``, ``instance_cooldown``.
"""),
    cfg.IntOpt('reserve_hosts', mutable=True, default=0, min=0, help="""
Amount of room that is kept free in each aggregate, as a number of hosts. With 2, for example, the
free room of all hosts that have instances must add up to at least the size of the two largest
hosts. Each resource class is compared separately, with the two hosts that have most of this class.
Packing and the emptying of disabled hosts make no moves that would leave less room free.

By default, 0: no room is reserved.

Set it to 1 to keep room for the instances of one host that fails. Raise it in large aggregates,
where several hosts may fail at the same time.

Related options: ``failover_hosts``, ``evacuate_disabled_hosts``.
"""),
    cfg.ListOpt('slot_flavors', mutable=True, default=[], help="""
Flavors for which evaluations count how many more servers would fit into each aggregate. Each entry
is the name of a flavor, or a size such as ``4:8192:40`` (VCPUs, MiB of memory, GiB of disk).
Entries are separated by commas, and only the first ten are used. The metric ``kronos_slots`` shows
the counted numbers of servers. From past numbers, "kronos-manage capacity --aggregate" predicts in
how many days no server will fit any more.

By default, no flavor: nothing is counted.

Set it to the few flavors that show whether the cloud is full. Counting each flavor takes a part of
the time that ``failover_check_percent`` permits.

Related options: ``failover_check_percent``, which must not be 0; ``[kronos_database]
evaluations_retention_days``, for how long past numbers are kept.
"""),
    cfg.IntOpt('refused_room_hold', mutable=True, default=0, min=0, max=604800, help="""
Seconds for which Kronos keeps room free for new servers that Nova could not place. The seconds run
from the end of the moves that make the room. If Nova finds no host for new servers ("No valid host
was found"), nova-conductor records their flavor, their project and their number. Evaluations then
search for moves that make room for the same number of servers of the same flavor and project. The
moves are made in the first aggregate in which enough room can be made. At level ``auto``, the moves
begin without approval. At the levels ``observe`` and ``approve``, the moves begin only after an
operator runs "kronos-manage room approve".

By default, 0: no room is made.

Set it to 1800 where users repeat a request after a failure.

Related options: ``automation``, ``[filter_scheduler] enabled_filters``.
"""),
    cfg.IntOpt('failover_hosts', mutable=True, default=0, min=0, max=3, help="""
Number of hosts that may fail at the same time. Plans preserve the ability of the servers of these
hosts to restart elsewhere. With 1, each host is considered separately: if all its servers could
restart on other hosts before a plan, all its servers can still do so after the plan. Moves after
which this would no longer be possible are left out of the plan. With 2 or 3, each set of two or
three hosts is considered as well. Checking all sets takes time.

An operator's request for a drain, a maintenance or room is refused if the servers of another host
could no longer restart elsewhere afterwards. The operator can force the request. Once a host is
disabled, the moves that empty it are not left out for this reason.

New servers may take the room that the servers of a host need to restart. Plans then move other
servers until there is enough room again. These moves are repairs (``repair_automation``).

By default, 0: plans do not consider failures of hosts.

Set it to 1 where servers must be able to restart after the failure of any one host. Raise it where
several hosts may fail at the same time.

Related options: ``failover_domains``, ``planning_time_limit``, ``repair_automation``.
"""),
    cfg.IntOpt('failover_domains', mutable=True, default=0, min=0, max=3, help="""
Number of failure domains, such as racks, that may fail at the same time. Plans preserve the ability
of the servers of these domains to restart elsewhere. The failure domains of each key in
``failure_domain_key`` are considered separately. The effects are the same as for hosts; see
``failover_hosts``.

By default, 0: plans do not consider failures of failure domains.

Set it to 1 where a rack may fail as a whole. Raise it where several failure domains may fail at the
same time.

Related options: ``failure_domain_key``, ``failover_hosts``.
"""),
    cfg.IntOpt('failover_check_percent', mutable=True, default=5, min=0, max=100, help="""
Percentage of the duration of evaluations that may be spent on a check of failures. The check finds
the hosts and failure domains whose servers could all restart elsewhere after a failure. Time that
one evaluation does not use is available to later evaluations. If a check needs more time than one
evaluation may spend, it is not made in every evaluation. The other evaluations show the results of
the last check.

By default, 5. With 0, there is no check.

Raise it where the metric ``kronos_failover_hosts`` counts hosts with the verdict ``not_judged``, or
where ``kronos_failover_judged_timestamp_seconds`` is old. Lower it where controllers are busy.

Related options: ``failure_domain_key``, ``evaluation_interval``, ``slot_flavors``.
"""),
    cfg.ListOpt('never_move_projects', mutable=True, default=[], help="""
IDs of projects whose instances are never moved, separated by commas. These instances are not even
moved off disabled or drained hosts.

For a single instance, set the key ``kronos:move`` in the metadata of the server, or in the extra
specs of its flavor. The value ``never`` has the same effect as this option. With the value
``only-evacuate``, the instance is only moved off disabled or drained hosts. The value ``always``
has no effect. If there are several values for an instance, the strictest value applies. Metadata
and extra specs therefore cannot permit a move that this option forbids.

By default, no project.

Add projects whose servers do not survive a live migration.

Related options: ``only_evacuate_projects``, ``move_hints``.
"""),
    cfg.ListOpt('only_evacuate_projects', mutable=True, default=[], help="""
IDs of projects whose instances are moved only to empty a disabled or drained host, separated by
commas.

By default, no project.

Add projects whose instances should not be moved to balance load.

Related options: ``never_move_projects``, ``move_hints``.
"""),
    cfg.ListOpt('move_hints', mutable=True, default=['project', 'flavor', 'metadata'],
                item_type=types.String(choices=HINTS), help="""
Sources that decide whether a server may be moved. ``project`` stands for the options
``never_move_projects`` and ``only_evacuate_projects``. ``flavor`` stands for the extra spec
``kronos:move`` of the server's flavor. ``metadata`` stands for the key ``kronos:move`` in the
server's metadata, which the owner of the server sets.

``project`` and ``flavor`` apply to all moves. With the suffix ``:balance``, they only apply when
load is balanced, hosts are packed or groups are repaired. With the suffix ``:evacuate``, they only
apply when a host is emptied. ``metadata`` never applies when a host is emptied. The lock of a
server ("openstack server lock") does not apply then either, although it prevents all other moves of
the server. An owner therefore cannot prevent the maintenance of a host.

By default, ``project``, ``flavor`` and ``metadata``.

Leave ``metadata`` out where tenants must not influence the moves of their servers.

Example: with ``move_hints = project, flavor:balance``, ``kronos:move`` of a flavor has no effect
when a host is emptied.

Related options: ``never_move_projects``, ``only_evacuate_projects``.
"""),
    cfg.MultiStrOpt('maintenance_window', mutable=True, default=[], help="""
Recurring time at which moves may be made, as ``AGGREGATE; CRON; MINUTES; TIME ZONE``. AGGREGATE is
the name of an aggregate, or ``*`` for every aggregate. CRON is a cron expression with five fields,
for the time at which the window opens. MINUTES is the length of the window. Without a time zone,
the time is UTC. The option may be given several times.

Outside its windows, an aggregate is evaluated and reported, but nothing is planned, and no planned
move is started. Moves in progress continue. When clocks are set back, a window that opens in the
repeated hour opens only the first time. When clocks are set forward, a window that would open in
the skipped hour opens an hour later. A window that can never open is refused.

By default, there is no window. Instances of an aggregate without a window may be moved at any time.

Set it where users expect migrations only at night or on certain days.

Example: ``maintenance_window = gpu; 0 22 * * sat; 360; Europe/Berlin``

Related options: ``[kronos_executor] stale_plan_age``.
"""),
    cfg.StrOpt('coordination_url', secret=True, help="""
URL of the lock service for planning. A worker locks an aggregate while it plans the aggregate, so
that no other worker plans the same aggregate. The URL has the form that the library tooz expects,
such as ``etcd3+http://controller:2379``, ``redis://controller:6379`` or
``mysql://user:password@controller/kronos``.

By default, a lock file below ``[DEFAULT] state_path`` is used. The lock file is sufficient for one
controller with any number of workers.

Set it where there are several controllers. With MySQL, a lock lasts only as long as the connection
to the MySQL server. This connection is idle while an aggregate is planned. Therefore
``wait_timeout`` of the MySQL server, and the timeouts of proxies in front of the MySQL server, must
be longer than ``cycle_timeout``.

Related options: ``cycle_timeout``, ``[DEFAULT] state_path``.
"""),
    cfg.ListOpt('notification_topics', default=[], help="""
Topics on which Kronos sends versioned notifications to other programs. The notifications are about
plans, moves, levels and drains; see "Notifications" in the documentation. Kronos sends the
notifications to the message broker of ``[oslo_messaging_notifications] transport_url``. The value
has to be the same in the nova.conf of every controller, and of every host on which commands are
run.

By default, no topic: nothing is sent.

Set it to a topic that a program reads, such as ``kronos_notifications``. Messages that no program
reads accumulate in the broker.

Related options: ``notification_backlog``, ``[oslo_messaging_notifications] transport_url``.
"""),
    cfg.IntOpt('notification_backlog', mutable=True, default=10000, min=100, help="""
Maximum number of unsent notifications that are kept while the message broker is down. If there are
more, the oldest notifications are dropped, and an error is logged. Listeners notice dropped
notifications by a gap in the sequence numbers. Each move leads to two notifications.

By default, 10,000, which is sufficient for 5,000 moves. This number of notifications takes about 15
MB in the control database.

Raise it where a broker may be down for longer. Lower it to save space in the control database.

Related options: ``notification_topics``, ``[kronos_database] notifications_retention_days``.
"""),
    cfg.StrOpt('atomic_moves', mutable=True, default='all', choices=[
        ('all', 'Every live migration in this cloud changes its allocations in one transaction.'),
        ('kronos', 'Only the live migrations that Kronos requests; Nova\'s own task carries out '
                   'the others.'),
        ('off', 'No live migration; Nova\'s own task carries out all of them.'),
    ], help="""
Live migrations that nova-conductor carries out by the atomic task of Kronos instead of Nova's own
task. The atomic task changes the allocations in one request to placement: the migration takes over
the allocation on the source host, and the instance gets an allocation on the destination. Thus no
allocation is ever missing or counted twice.

By default, ``all``.

Set it to ``kronos`` or ``off`` to find out whether the atomic task is the cause of a fault. With
``kronos``, only the live migrations that Kronos requests use the atomic task. With ``off``, no live
migration uses the atomic task. nova-conductor then no longer checks the allocations of recent
migrations, so allocations that Nova leaves behind are not repaired.

Related options: ``[kronos_allocations] reconcile_interval``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
