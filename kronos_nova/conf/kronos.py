"""``[kronos]``: the hosts that Kronos balances, the times at which it plans, and the changes that
it may make without approval."""

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
Main options of Kronos: the hosts that it balances, the times at which it does so, and the steps
that it takes without being asked by an operator.
""")

OPTS = [
    cfg.StrOpt('automation', mutable=True, default='observe', choices=LEVELS, help="""
Level of automation: the steps that Kronos takes without being asked by an operator. This level
applies where no level was set by "kronos-manage automation set". A level that was set by that
command is used by every worker within seconds, without a restart.

By default, ``observe``: plans are made and reported, and nothing is moved.

Read some days of reports first ("kronos-manage plan list"). Raise it to ``approve`` or ``auto``
when the plans are what you would have done yourself.

Related options: ``max_automation``, ``aggregate_automation``, ``repair_automation``.
"""),
    cfg.StrOpt('max_automation', mutable=True, default='auto', choices=LEVELS, help="""
Highest level that "kronos-manage automation set" accepts, and that any aggregate has. An operator's
"kronos-manage host drain" is carried out at every level. The value has to be the same on every
controller.

By default, ``auto``: there is no limit.

Lower it to ``approve`` where nothing may ever be moved without an approval.

Related options: ``automation``, ``aggregate_automation``.
"""),
    cfg.StrOpt('run_in', default='conductor', choices=[
        ('conductor', 'nova-conductor plans, and carries out moves.'),
        ('daemons', 'kronos-engine plans, and kronos-executor carries out moves through Nova\'s '
                    'public API; Kronos in nova-conductor only makes live migrations atomic.'),
    ], help="""
Processes that plan and carry out moves.

By default, the processes of nova-conductor.

Set it to ``daemons`` to keep this work out of the processes of the control plane; then run
``kronos-engine`` and ``kronos-executor``, which need the credentials of ``[kronos_nova]``. The
value must be the same for conductors and daemons.

Related options: ``[kronos_nova]``.
"""),
    cfg.DictOpt('aggregate_automation', default={}, help="""
Levels of ``automation`` for single aggregates, as ``name:level`` separated by commas, such as
``test:auto,database:approve``. The pool of hosts in no aggregate is ``_unassigned_``.
"kronos-manage automation set LEVEL --aggregate NAME" takes precedence; without ``--aggregate`` that
command lowers these levels but never raises them.

By default, all aggregates have the level of ``automation``.

Set it to try a level in one aggregate first, or to ``off`` to leave an aggregate alone without
removing it from ``aggregates``.

Related options: ``automation``, ``max_automation``, ``aggregates``.
"""),
    cfg.ListOpt('aggregates', default=[], help="""
Names of the host aggregates to balance, separated by commas. Each is planned separately, and no
instance ever leaves its aggregate.

By default, no aggregate. If ``include_unassigned_hosts`` is off too, there is nothing to balance,
which Kronos reports as an error when it starts.

Add an aggregate once its policies are right; ``aggregate_automation`` gives each one a level of its
own.

Related options: ``include_unassigned_hosts``, ``aggregate_automation``.
"""),
    cfg.BoolOpt('include_unassigned_hosts', default=False, help="""
Whether Kronos also balances the hosts that are in no aggregate, as one more pool.

By default, these hosts are left alone.

Set it in a small cloud without aggregates.

Related options: ``aggregates``.
"""),
    cfg.StrOpt('policies_file', default='/etc/nova/kronos-policies.yaml', help="""
Path of the policies file. It has the PromQL queries that measure the load of a host, and the
imbalance above which load is spread. It is read again when it changes.

By default, ``/etc/nova/kronos-policies.yaml``.

Change it where the file is elsewhere. "kronos-test-config" checks its content.

Related options: ``[kronos_prometheus] url``.
"""),
    cfg.IntOpt('evaluation_interval', mutable=True, default=300, min=1, max=604800, help="""
Seconds between two evaluations of an aggregate.

By default, five minutes.

Lower it where hot hosts should be relieved sooner, but not below the scrape interval of your
Prometheus. Raise it where evaluations take much of a controller's time.

Related options: ``cooldown``, ``cycle_timeout``.
"""),
    cfg.IntOpt('aggregates_per_cycle', mutable=True, default=0, min=0, help="""
Maximum number of aggregates that one worker plans at a time. Other aggregates that are due are left
to other workers, which plan them at the same time.

By default, 0: one worker plans all that are due together.

Set it where planning takes longer than reading the cloud, which each worker does for itself. A
lower value, such as 1, uses more workers.

Related options: ``cycle_timeout``.
"""),
    cfg.IntOpt('cycle_timeout', mutable=True, default=900, min=10, help="""
Seconds that a planning process may take to read the cloud, plan and save the plans. A process that
takes longer is killed, which is logged, and each of its aggregates is tried again alone, after
pauses that grow to an hour.

By default, a quarter of an hour.

Raise it where reading the cloud takes minutes. An initial value is three times what a cycle takes,
and more than ``[kronos_prometheus] total_timeout``. Lower it where a process that hangs should be
replaced sooner.

Related options: ``planning_time_limit``, ``[kronos_prometheus] total_timeout``.
"""),
    cfg.IntOpt('planner_niceness', mutable=True, default=19, min=0, max=19, help="""
Niceness of a planning process, relative to the service that started it (nice(1)). With 19 the
process also runs under the kernel's SCHED_IDLE (sched(7)): it uses the processor time that other
processes leave, and RPCs of nova-conductor do not wait for it.

By default, 19.

Lower it where the processors of a controller are always busy and evaluations take minutes; an
initial value is then 10.

Related options: ``cycle_timeout``.
"""),
    cfg.IntOpt('planner_idle_time', mutable=True, default=900, min=0, help="""
Seconds for which a planning process waits after a cycle, in order to plan the next cycle too. A new
process has to load Nova, which takes seconds of a processor, and to read everything from placement
again. A waiting process uses no processor, and some 150 MiB of memory plus 1 KiB for every
instance.

By default, a quarter of an hour. With 0, the process ends after each cycle.

Raise it above ``evaluation_interval``; otherwise the process always ends before the next cycle.
Lower it where controllers are short of memory.

Related options: ``evaluation_interval``, ``planner_max_memory``.
"""),
    cfg.IntOpt('planner_max_cycles', mutable=True, default=200, min=1, help="""
Number of cycles after which a planning process ends and a new one starts.

By default, 200.

Lower it if the memory of the process ever grows from cycle to cycle. There is no need to raise it.

Related options: ``planner_max_memory``.
"""),
    cfg.IntOpt('planner_max_memory', mutable=True, default=2048, min=64, help="""
Memory, in MiB, that a planning process may have after a cycle. If the process has more memory, it
ends, and the next cycle begins in a new process.

By default, 2048 MiB.

Raise it where the process of a large cloud ends after each cycle. Lower it where controllers are
short of memory. An initial value is twice what the process has after a cycle.

Related options: ``planner_idle_time``, ``planner_max_cycles``.
"""),
    cfg.IntOpt('cooldown', mutable=True, default=600, min=0, help="""
Seconds for which no plan is made for an aggregate after a plan for it was carried out, so that the
next plan is made from the load after these moves.

By default, ten minutes.

Raise it above the window of ``rate()`` in your PromQL. Lower it where one host after the other
becomes hot.

Related options: ``instance_cooldown``, ``spread_interval``.
"""),
    cfg.IntOpt('instance_cooldown', mutable=True, default=3600, min=0, help="""
Seconds for which an instance that was moved is not moved again.

By default, an hour.

Raise it where users notice migrations. Lower it where load changes fast.

Related options: ``instance_cooldown_factor``, ``instance_cooldown_max``.
"""),
    cfg.IntOpt('instance_quarantine_seconds', mutable=True, default=86400, min=-1, help="""
Seconds for which an instance is not tried again after its migration failed for good. A migration
that Nova refused to begin does not count; see ``rejection_backoff_cycles``.

By default, a day. With -1 an operator has to release it ("kronos-manage quarantine remove").

Raise it where a failed migration harms the guest. Lower it where causes of failures are removed
soon.

Related options: ``rejection_backoff_cycles``, ``[kronos_executor] max_retries``.
"""),
    cfg.BoolOpt('evacuate_disabled_hosts', mutable=True, default=False, help="""
Whether Kronos live migrates all instances off hosts whose nova-compute service is disabled but up,
before any balancing.

By default, such hosts keep their instances.

Turn it on where a host is disabled only in order to be serviced.

Related options: ``reserve_hosts``.
"""),
    cfg.BoolOpt('enforce_hard_affinity', mutable=True, default=False, help="""
Whether Kronos repairs violations of ``affinity`` and ``anti-affinity`` server groups by moves,
before any balancing.

By default, existing violations stay; no move makes new ones.

Turn it on where evacuations or resizes have left groups that violate their policies.

Related options: ``enforce_soft_affinity``.
"""),
    cfg.BoolOpt('enforce_soft_affinity', mutable=True, default=False, help="""
Whether Kronos repairs violations of ``soft-affinity`` and ``soft-anti-affinity`` server groups by
moves, before any balancing.

By default, existing violations stay.

Turn it on where the policies of soft groups should hold whenever there is room.

Related options: ``enforce_hard_affinity``, ``soft_group_cost``.
"""),
    cfg.StrOpt('repair_rules', mutable=True, default='all', choices=[
        ('off', 'Repair no violations; moves for other reasons obey the rules.'),
        ('must', 'Repair violations of strict rules only.'),
        ('all', 'Repair violations of strict rules, and of preferences where that pays.'),
    ], help="""
Violations of the policies file's ``rules`` that Kronos repairs by moves, before any balancing.
Repairs are carried out at the level of ``repair_automation``.

By default, ``all``. A violated preference is repaired only where the ``cost`` of the rule is higher
than the cost of the move plus the imbalance that the move adds.

Set it to ``off`` where rules are introduced in a cloud that violates them, and raise it step by
step.

Related options: ``repair_automation``, ``max_rule_repairs_per_cycle``.
"""),
    cfg.StrOpt('repair_automation', mutable=True, choices=LEVELS, help="""
Level of automation of repairs. Repairs are moves that end violations of ``rules``, and moves after
which the servers of a lost host could restart elsewhere again (``failover_hosts``). "kronos-manage
automation set --repairs" takes precedence, for all aggregates or for one; ``max_automation`` limits
both. In an aggregate whose level is ``off`` nothing is repaired.

By default, repairs have the level of their aggregate, and are part of its plans. With another
level, repairs get plans of their own, with the purpose ``repair``. With a level higher than that of
the aggregate, rules are repaired before anything else is planned; with a lower level, rules are
repaired once no other moves are needed.

Set it to ``approve`` where load may be balanced without approval, but a new rule should not move
servers before an operator has seen which servers those are. Set it to ``auto`` where only rules
should move servers.

Related options: ``repair_rules``, ``max_rule_repairs_per_cycle``, ``automation``.
"""),
    cfg.IntOpt('max_rule_repairs_per_cycle', mutable=True, default=0, min=0, help="""
Maximum number of moves of a plan that repair violated ``rules``.

By default, 0: every move of the plan may repair rules. The policies' ``max_migrations_per_cycle``
limits the moves of a plan.

Set it where a new rule concerns many servers; an initial value is 2. Raise it once the repairs are
as you expect.

Related options: ``repair_rules``, ``repair_automation``.
"""),
    cfg.ListOpt('failure_domain_key', default=[], help="""
Keys of host aggregates' metadata that name failure domains: parts of the cloud that fail as a
whole. Name the largest domains first, separated by commas: with ``room, rack`` a rack belongs to
its room. A host has the values of all its aggregates; where two aggregates have different values of
a key, the value that sorts first holds.

By default, no key, so that Kronos knows no failure domains.

Set it where rules should keep servers inside a rack, outside a rack, or in different racks, or
where ``failover_domains`` is set.

Example: ``failure_domain_key = room, rack``, with ``openstack aggregate set --property rack=r3``

Related options: ``policies_file``, ``failover_domains``.
"""),
    cfg.BoolOpt('restrict_to_az', mutable=True, default=False, help="""
Whether instances stay in their availability zone: no instance is moved to a host of another one.

By default, an instance may go to any host of its aggregate that Nova permits.

Turn it on where an aggregate spans several zones, and each zone should keep its instances.

Related options: ``host_checks``.
"""),
    cfg.ListOpt('host_checks', mutable=True, default=list(CHECKS),
                item_type=types.String(choices=CHECKS), help="""
Requirements of servers that Kronos checks itself before it plans a move to a host, so that it does
not plan moves that Nova would refuse. Nova checks the moves of every plan in any case.

* ``traits``: required and forbidden traits of the flavor and the image
* ``aggregates``: the availability zone that a server is pinned to, and aggregates with the metadata
  ``trait:NAME=required`` (``[scheduler] enable_isolated_aggregate_filtering``)
* ``image``: architecture, hypervisor and hypervisor version that the image asks for
* ``hypervisor``: a destination has the hypervisor of the source, and no older version
* ``cpu``: a destination's processors have all features of the source's processors, unless Nova
  knows the CPU model of the guest
* ``numa``: NUMA cells with free CPUs, memory and pages for a server that needs cells

By default, all of these are checked. A requirement that is left out of the list is checked only by
Nova.

Leave ``hypervisor`` out where ``[workarounds] skip_hypervisor_version_check_on_lm`` is set. Leave
``cpu`` out where ``[workarounds] skip_cpu_compare_on_dest`` is set, where guests are emulated
(``virt_type = qemu``), or where guests have named models (``cpu_mode = custom``) and Kronos runs
outside Nova.

Related options: ``rejection_backoff_cycles``.
"""),
    cfg.StrOpt('spread_planner', mutable=True, default='spread', help="""
Planner that spreads load: ``spread`` looks for the best plan within the budget, ``greedy`` takes
the best single move again and again. Other planners may be installed as entry points of
``kronos_nova.planners``.

By default, ``spread``.

Set it to ``greedy`` where plans must be simple to follow.

Related options: ``pack_planner``, ``planning_time_limit``.
"""),
    cfg.StrOpt('pack_planner', mutable=True, default='pack', help="""
Planner that frees hosts: ``pack`` frees the most hosts within the budget, ``ffd`` is the simple
algorithm "first fit decreasing". Other planners may be installed as entry points of
``kronos_nova.planners``.

By default, ``pack``.

Set it to ``ffd`` where plans must be simple to follow.

Related options: ``spread_planner``, ``planning_time_limit``.
"""),
    cfg.FloatOpt('planning_time_limit', mutable=True, default=10.0, min=0.1, help="""
Seconds after which planning an aggregate stops and the best plan found so far is used. The report
then has a warning that names this option. A plan that is finished before the limit does not depend
on the speed of the machine.

By default, ten seconds. Planning takes nearly as long only for thousands of hosts, or for nearly
full hosts with a large budget of moves.

Raise it where the warning appears. Lower it where controllers have little time for planning.

Related options: ``cycle_timeout``.
"""),
    cfg.FloatOpt('overload_ceiling', mutable=True, default=0.95, min=0.0, max=1.0, help="""
Load (0 to 1) that no host may exceed in any policy while a plan is carried out, unless the host
exceeded it before. To empty a disabled host, other hosts may exceed it where no other destination
is left for an instance. Packing uses the ``capacity_threshold`` of each policy instead.

By default, 0.95.

Raise it where hosts work well at full load and plans find no destination. Lower it where hosts need
a reserve for peaks.

Related options: ``policies_file``.
"""),
    cfg.FloatOpt('min_coverage', mutable=True, default=1.0, min=0.0, max=1.0, help="""
Part (0 to 1) of an aggregate's available hosts that must have a sample of a policy's query for the
policy to be used in a cycle. With fewer samples, the policy counts as one without data.

By default, all hosts need a sample. With less than 1, hosts without a sample are neither sources
nor destinations.

Lower it in a large aggregate where some exporter is always down; an initial value is 0.9.

Related options: ``min_known_servers``, ``max_sample_age``.
"""),
    cfg.FloatOpt('min_known_servers', mutable=True, default=0.8, min=0.0, max=1.0, help="""
Part (0 to 1) of a host's running servers that must have a series in a policy's profile for the
host's measured load to be used. A host with fewer has no score in that policy: it is a source only
of drains and never a destination, and reports name it. With a ``vm_profile_fallback`` other than
``skip``, the load of a host is used unless none of its servers has a series while this part of the
servers of other hosts has one.

By default, 0.8. With 0 the load of every host is used.

Lower it where some servers never have a series. Raise it where missing series have led to wrong
moves.

Related options: ``server_grace``, ``min_coverage``.
"""),
    cfg.FloatOpt('profile_tolerance', mutable=True, default=0.1, min=0.0, help="""
Tolerance, as a fraction of a host, with which the load of the host (score) is compared with the
loads of its servers (profiles). The loads do not agree if the profiles add up to more than 1.5
times the score plus the tolerance, or if all profiles are 0 and the score is above the tolerance.
If the loads do not agree, the servers of the host are not moved to spread load. The score still
limits moves to the host.

By default, 0.1.

Raise it where loads change faster than the queries average them; with 1 every profile is accepted.
Lower it to notice sooner that the queries of hosts and of servers do not fit together.

Related options: ``min_known_servers``.
"""),
    cfg.IntOpt('server_grace', mutable=True, default=600, min=0, help="""
Seconds after the launch or the last live migration of a server during which it need not have a
series in a policy's profile.

By default, ten minutes.

Set it to the longest ``rate()`` window of the policies plus two scrape intervals. With less, the
measured load of hosts with new servers is not used.

Related options: ``min_known_servers``.
"""),
    cfg.BoolOpt('accept_partial_metrics', mutable=True, default=False, help="""
Whether Kronos plans with answers of queries that are marked as incomplete. These are answers with
warnings (Thanos names the stores that did not answer, Prometheus the remote storage), and answers
marked as partial (VictoriaMetrics). The sums in such an answer may lack a part of the load although
no host is missing.

By default, a policy has no data where the answer for its hosts is incomplete. Where the answer for
its instances is incomplete, the policy's ``vm_profile_fallback`` is used.

Turn it on only where a store that never answers has no data that the policies need.

Related options: ``min_coverage``.
"""),
    cfg.FloatOpt('max_sample_age', mutable=True, default=300.0, min=1.0, help="""
Maximum age of a sample in seconds, by its timestamp. An older sample is ignored. Samples whose
timestamps are further in the future than this are used with a warning, because their age is not
known. Prometheus stamps an answer with the time at which the answer was computed. This option
therefore detects caches that serve old answers, and clocks that differ.

By default, five minutes.

Set it to several scrape intervals, and above the difference between the clocks of controllers and
of Prometheus.

Related options: ``evaluation_interval``.
"""),
    cfg.IntOpt('stabilization_cycles', deprecated_name='hold_cycles', mutable=True, default=1,
               min=1, help="""
Number of evaluations in a row that must find an aggregate imbalanced before its load is spread.
Packing, the evacuation of disabled hosts and the repair of server groups are not delayed.

By default, one: load is spread at once.

Raise it where short peaks of load should not lead to moves; an initial value is 3.

Related options: ``evaluation_interval``, ``restraint``.
"""),
    cfg.IntOpt('spread_interval', mutable=True, default=0, min=0, max=31536000, help="""
Seconds for which the load of an aggregate is not spread again after a plan has spread it. In this
time, hosts above the ``high`` of a policy are still relieved, disabled hosts are emptied and server
groups are repaired, after ``cooldown``.

By default, 0: load is spread whenever there is an imbalance.

Set it where hot hosts should be relieved at once, but an even load can wait: with 21600, load is
spread at most four times a day. It is useful only where policies have ``high``; otherwise
``cooldown`` has the same effect.

Related options: ``cooldown``.
"""),
    cfg.FloatOpt('restraint', mutable=True, default=1.0, min=0.0, max=100.0, help="""
Reluctance to move instances in order to spread load (no unit). With 0, a plan spreads the present
load as evenly as the planner can. With a higher value, a plan spreads the load that is likely in
the next half hour, predicted from the load of each instance in the last day (its habits).

By default, 1. A plan is then made once the imbalance of the predicted load is above the threshold
of a policy by more than random variation explains. The plan copies as little memory as needed to
bring the policy to its threshold. Optional moves, which make a host less likely to become full
(above 0.9), are made only if they save more core-hours than copying the instance costs. No instance
returns within a day to a host that it left. Compared with 0, far fewer moves are made, and fewer
hosts become full.

Raise it where migrations are expensive: the prediction then looks further ahead, and optional moves
have to save that many times more. Lower it to 0 where only an even load counts, such as in tests.

The option has its full effect some hours after the first start of Kronos, when the habits of
instances are known. A replay uses the habits in its snapshot.

Related options: ``stabilization_cycles``, ``min_gain``, ``no_return_window``,
``max_moves_per_instance_and_week``.
"""),
    cfg.FloatOpt('min_gain', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount (0 to 1) by which every move of a spread plan must lower the combined imbalance. With
``restraint``, it is the amount by which the move must bring its two hosts closer to their target
load. The planner ``spread`` applies it to each move; from plans of other planners, Kronos removes
the last moves if they gain less on average.

By default, 0: every gain counts.

Raise it where plans contain many moves that change little; an initial value is 0.005.

Related options: ``min_gain_per_gib``, ``min_gain_per_minute``, ``min_gain_per_failure``,
``restraint``.
"""),
    cfg.FloatOpt('min_gain_per_gib', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to ``min_gain`` for every GiB of memory that a move copies, so that a large
instance moves only for a large gain.

By default, 0: the memory of an instance does not count.

Raise it where copying loads the network; an initial value is 0.0001.

Related options: ``min_gain``.
"""),
    cfg.FloatOpt('min_gain_per_minute', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to ``min_gain`` for every minute that a move is expected to take. The
expectation comes from earlier moves of the instance or, where there are none, from the time that
other instances took for a GiB. Earlier moves between the same two hosts count too.

By default, 0: time costs nothing.

Raise it where long migrations harm users; an initial value is 0.0005.

Related options: ``min_gain``, ``experience_window``.
"""),
    cfg.FloatOpt('min_gain_per_failure', mutable=True, default=0.0, min=0.0, max=1.0, help="""
Amount that is added to ``min_gain`` for every move of the instance, and for every move between the
same two hosts, that failed for good within ``experience_window``.

By default, 0: failures cost nothing.

Raise it where the same moves fail again and again; an initial value is 0.01.

Related options: ``min_gain``, ``experience_window``.
"""),
    cfg.IntOpt('experience_window', mutable=True, default=2592000, min=0, help="""
Seconds for which a move that has ended counts in the expected cost of later moves.

By default, 30 days.

Raise it where few moves are made; a value above ``moves_retention_days`` has no effect. Lower it
after hosts or networks were changed.

Related options: ``min_gain_per_minute``, ``min_gain_per_failure``, ``[kronos_database]
moves_retention_days``.
"""),
    cfg.FloatOpt('soft_group_cost', min=0.0, max=1.0, help="""
Amount (0 to 1) by which a spread plan must lower the combined imbalance for every member of a
``soft-affinity`` or ``soft-anti-affinity`` server group that it moves against the group's policy.
Moves at the end of a plan that gain less are left out.

By default, it is not set: soft policies are as strict as hard ones, and only "kronos-manage host
drain" violates them, where a host could not be emptied otherwise. Once it is set, packing and the
evacuation of disabled hosts violate them too.

Set it where soft groups keep hosts from being relieved or emptied; an initial value is 0.02. Raise
it where groups matter more than load.

Related options: ``enforce_soft_affinity``, ``min_gain``.
"""),
    cfg.FloatOpt('instance_cooldown_factor', mutable=True, default=2.0, min=1.0, max=100.0, help="""
Factor by which ``instance_cooldown`` grows each time that an instance is moved again, so that an
instance which is chosen often moves less and less.

By default, 2. With 1 the cooldown never grows.

Raise it where single instances move too often. Lower it where most of the load comes from a few
instances, which then have to move more often.

Related options: ``instance_cooldown``, ``instance_cooldown_max``.
"""),
    cfg.IntOpt('instance_cooldown_max', mutable=True, default=86400, min=0, help="""
Maximum number of seconds to which ``instance_cooldown`` grows. Once an instance was not moved for
this many seconds, its earlier moves no longer count.

By default, a day.

Raise it where single instances move too often. Lower it where most of the load comes from a few
instances, which then have to move more often.

Related options: ``instance_cooldown``, ``instance_cooldown_factor``.
"""),
    cfg.IntOpt('rejection_backoff_cycles', deprecated_name='refusal_rest_cycles', mutable=True,
               default=12, min=0, max=1000, help="""
Number of evaluation intervals for which an instance is not moved after Nova refused three hosts for
it, or all existing hosts. Nova is asked about the moves of a plan before they are made. The cause
(pinned CPUs, a device, a trait) seldom changes within minutes, and every question costs calls of
the scheduler. For the same time, no instance of the same kind (flavor, image, project, requirements
and server groups) is moved to a host to which Nova refused to begin a move. "kronos-manage refusal
list" shows these instances and Nova's reason.

By default, 12: an hour with the default ``evaluation_interval``. 0 asks again in the next cycle.

Raise it where the scheduler is busy. Lower it where such instances should be tried soon after room
was made for them.

Related options: ``evaluation_interval``, ``instance_quarantine_seconds``, ``host_checks``.
"""),
    cfg.IntOpt('no_return_window', deprecated_name='return_window', mutable=True, default=21600,
               min=0, help="""
Seconds for which an instance is not moved back to a host that it left in a move of Kronos or of
others. An instance that moves back and forth is a sign of two conflicting rules.

By default, six hours. 0 permits every return.

Raise it where instances move back and forth, but not above the time for which Nova keeps
migrations. Lower it where an aggregate has few hosts.

Related options: ``restraint``, ``instance_cooldown``.
"""),
    cfg.IntOpt('max_moves_per_project', mutable=True, default=0, min=0, help="""
Maximum number of instances of one project that a plan moves. Moves that empty a disabled host are
not counted.

By default, 0: no limit.

Set it where not all servers of a tenant should move at once; an initial value is half of
``max_migrations_per_cycle``. Lower it where tenants notice migrations.

Related options: ``max_moves_per_project_and_day``.
"""),
    cfg.IntOpt('max_moves_per_project_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves of one project's instances within 24 hours, in all aggregates together. The
moves of a plan that waits for an approval are not counted before it starts. Moves that empty a
disabled host are never counted.

By default, 0: no limit.

Set it where tenants notice migrations. Raise it where hosts stay too full because the number is
reached.

Related options: ``max_moves_per_project``.
"""),
    cfg.IntOpt('max_moves_per_cause_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves of other instances that the load of one instance may cause within 24 hours.
A move that spreads load counts for the instance with the largest load on the host that it leaves,
unless it moves that instance itself. Once the number is reached, no other instance leaves that host
because of its load; the instance itself may still leave. Moves that empty a disabled host are not
counted.

By default, 0: no limit.

Set it where one instance whose load comes and goes moves its neighbours all day; an initial value
is 10.

Related options: ``max_moves_per_instance_and_day``.
"""),
    cfg.IntOpt('max_moves_per_instance_and_week', mutable=True, default=4, min=0, help="""
Maximum number of moves of one instance within seven times 24 hours. ``instance_cooldown`` makes
further moves rarer; this option is a strict limit. Moves that empty a disabled host are not
limited.

By default, four. 0 is no limit.

Lower it where users notice migrations. Raise it where a few instances carry most of the load.

Related options: ``max_moves_per_instance_and_day``, ``instance_cooldown``.
"""),
    cfg.IntOpt('max_moves_per_instance_and_day', mutable=True, default=0, min=0, help="""
Maximum number of moves of one instance within 24 hours. Moves that empty a disabled host are not
limited.

By default, 0: no limit.

Set it where users notice migrations; an initial value is 1.

Related options: ``max_moves_per_instance_and_week``, ``instance_cooldown``.
"""),
    cfg.IntOpt('reserve_hosts', mutable=True, default=0, min=0, help="""
Number of hosts for whose instances room is kept free in an aggregate. With N, the hosts that have
instances keep as much of every resource class free as the N largest hosts can hold. Packing
leaves this room free, and a disabled host is not emptied into it.

By default, 0: no room is reserved.

Set it to 1 to keep room for the instances of one host that fails. Raise it in large aggregates.

Related options: ``failover_hosts``, ``evacuate_disabled_hosts``.
"""),
    cfg.ListOpt('slot_flavors', mutable=True, default=[], help="""
Names of flavors, or sizes such as ``4:8192:40`` (VCPUs, MiB, GiB), separated by commas. Evaluations
count how many more servers of each fit in each aggregate. The metric ``kronos_slots`` shows the
counts, and "kronos-manage capacity --aggregate" predicts from their history in about how many days
nothing fits any more. Only the first ten are counted.

By default, none.

Set it to the few flavors that show whether the cloud is full; each takes time of
``failover_check_percent``.

Related options: ``failover_check_percent``, which must not be 0; ``[kronos_database]
evaluations_retention_days`` for the history.
"""),
    cfg.IntOpt('refused_room_hold', mutable=True, default=0, min=0, max=604800, help="""
Seconds for which room is kept for servers like those for which Nova found no host ("No valid host
was found"). nova-conductor records such requests. Evaluations look for moves that make room for as
many servers of the flavor and project as were requested, in the first aggregate in which there are
such moves. At the level ``auto`` the moves begin by themselves; at the other levels they are
proposed, and begin after "kronos-manage room approve".

By default, 0: no room is made for them.

Set it to 1800 where users try again after a failure.

Related options: ``automation``, ``[filter_scheduler] enabled_filters``.
"""),
    cfg.IntOpt('failover_hosts', mutable=True, default=0, min=0, max=3, help="""
Number of hosts that may fail together without harm: no plan makes the consequences of their loss
worse. With 1, this holds for each single host: if all of its servers could restart elsewhere before
a plan, they can after it, and moves that would change this are left out. With 2 or 3 the same holds
for each set of two, or three, hosts too, and each of these sets takes time to judge. A drain, a
maintenance, or room that an operator asks for is refused where fewer hosts could be lost after it,
unless it is forced. Moves that empty a disabled host are never left out. Where new servers have
filled the room that the servers of a lost host need, plans move other servers until the host may be
lost again, at the level of ``repair_automation``.

By default, 0: plans do not consider losses of hosts.

Set it to 1 where servers must restart after the loss of any host. Raise it where several hosts may
fail together.

Related options: ``failover_domains``, ``planning_time_limit``, ``repair_automation``.
"""),
    cfg.IntOpt('failover_domains', mutable=True, default=0, min=0, max=3, help="""
Number of failure domains, such as racks, that may fail together without harm: no plan makes the
consequences of their loss worse. The domains of each key in ``failure_domain_key`` are considered
separately. ``failover_hosts`` is the same for single hosts, and explains the effects.

By default, 0: plans do not consider losses of failure domains.

Set it to 1 where racks fail as a whole.

Related options: ``failure_domain_key``, ``failover_hosts``.
"""),
    cfg.IntOpt('failover_check_percent', mutable=True, default=5, min=0, max=100, help="""
Part of the time of evaluations, in percent, that may be spent on checking which hosts and failure
domains may be lost: whether all of their servers could restart elsewhere. Time that is not used is
available to later evaluations. Where a check takes longer than one evaluation allows, some
evaluations show the results of an earlier one.

By default, 5. With 0, no losses are checked.

Raise it where ``kronos_failover_hosts`` counts hosts that were not judged, or
``kronos_failover_judged_timestamp_seconds`` is old. Lower it where controllers are busy.

Related options: ``failure_domain_key``, ``evaluation_interval``, ``slot_flavors``.
"""),
    cfg.ListOpt('never_move_projects', mutable=True, default=[], help="""
IDs of projects whose instances are never moved, separated by commas, not even off hosts that are
disabled or drained. For single instances, set the server metadata or the flavor extra spec
``kronos:move`` to ``never``, to ``only-evacuate`` (moved only off disabled or drained hosts) or to
``always`` (as without the key). The strictest value counts, so that metadata and extra specs cannot
permit what this list forbids.

By default, none.

Add projects whose servers do not survive a live migration.

Related options: ``only_evacuate_projects``, ``move_hints``.
"""),
    cfg.ListOpt('only_evacuate_projects', mutable=True, default=[], help="""
IDs of projects whose instances are only moved off disabled and drained hosts, separated by commas.

By default, none.

Add projects that should not be moved to balance load.

Related options: ``never_move_projects``, ``move_hints``.
"""),
    cfg.ListOpt('move_hints', mutable=True, default=['project', 'flavor', 'metadata'],
                item_type=types.String(choices=HINTS), help="""
Sources that decide whether a server may be moved: ``project`` (the options ``never_move_projects``
and ``only_evacuate_projects``), ``flavor`` (its extra spec ``kronos:move``) and ``metadata`` (the
same key of the server's own metadata, which its owner sets). ``project`` and ``flavor`` hold for
every move; with ``:balance`` added they hold only when load is balanced, hosts are packed or groups
repaired, with ``:evacuate`` only when a host is emptied. ``metadata`` never holds when a host is
emptied, nor does a server's lock: an owner cannot keep a host from being serviced.

By default, all three.

Leave ``metadata`` out where tenants may not decide on placement at all.

Example: ``move_hints = project, flavor:balance`` moves servers of every flavor off disabled hosts.

Related options: ``never_move_projects``, ``only_evacuate_projects``.
"""),
    cfg.MultiStrOpt('maintenance_window', mutable=True, default=[], help="""
Maintenance window: a recurring time at which moves may be made, as ``AGGREGATE; CRON; MINUTES; TIME
ZONE``. The cron expression (five fields) is the time at which the window opens, in UTC where no
time zone is given, and MINUTES its length. ``*`` stands for every aggregate. The option may be
given several times. Outside its windows an aggregate is evaluated and reported, but nothing is
planned, and no planned move is started; moves in progress continue to their end. When clocks are
put back, a window in the hour that occurs twice opens the first time; when they are put forward, a
window in the hour that is left out opens later by that hour. A window that can never open is
refused.

By default, an aggregate that no window names may be moved at any time.

Set it where users expect migrations only at night or on some days.

Example: ``maintenance_window = gpu; 0 22 * * sat; 360; Europe/Berlin``

Related options: ``[kronos_executor] stale_plan_age``.
"""),
    cfg.StrOpt('coordination_url', secret=True, help="""
URL of the lock service, in the form that tooz expects, through which the conductors agree which of
them plans an aggregate, such as ``etcd3+http://controller:2379``, ``redis://controller:6379`` or
``mysql://user:password@controller/kronos``.

By default, a lock file below ``[DEFAULT] state_path`` is used, which serves one controller with any
number of workers.

Set it where there are several controllers. A lock of MySQL lasts as long as its connection, which
is idle meanwhile: the server's ``wait_timeout``, and those of proxies in front of it, must be
longer than ``cycle_timeout``.

Related options: ``cycle_timeout``, ``[DEFAULT] state_path``.
"""),
    cfg.ListOpt('notification_topics', default=[], help="""
Topics on which Kronos sends versioned notifications of plans, moves, levels and drains to other
programs; see "Notifications" in the documentation. They go to the broker of
``[oslo_messaging_notifications] transport_url``. The value has to be the same in the nova.conf of
every controller, and of every host on which commands are run.

By default, nothing is sent.

Set it to a topic that has a listener, such as ``kronos_notifications``: messages that are not
fetched stay in the broker.

Related options: ``notification_backlog``, ``[oslo_messaging_notifications] transport_url``.
"""),
    cfg.IntOpt('notification_backlog', mutable=True, default=10000, min=100, help="""
Maximum number of notifications that wait for a broker that is down. With more, the oldest are
dropped, which is logged and leaves a gap in the sequence numbers. Each move sends two.

By default, 10,000: 5,000 moves, and about 15 MB in the control database.

Raise it where a broker may be down for long. Lower it to save room in the control database.

Related options: ``notification_topics``, ``[kronos_database] notifications_retention_days``.
"""),
    cfg.StrOpt('atomic_moves', mutable=True, default='all', choices=[
        ('all', 'Every live migration in this cloud changes its allocations in one transaction.'),
        ('kronos', 'Only the live migrations that Kronos requests; Nova\'s own task carries out '
                   'the others.'),
        ('off', 'No live migration; Nova\'s own task carries out all of them.'),
    ], help="""
Live migrations that nova-conductor carries out by the atomic task of Kronos. It gives the
allocation at the source to the migration, and the allocation at the destination to the instance, in
one request to placement, so that no allocation is ever missing or counted twice.

By default, ``all``.

Set it to ``kronos`` or ``off`` to find out whether the task is the cause of a fault. Allocations
that Nova then leaves behind are not repaired with ``off``.

Related options: ``[kronos_allocations] reconcile_interval``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
