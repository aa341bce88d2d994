"""``[kronos]``: what is balanced, when, and how far Kronos may go on its own."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_config import types

HINTS = ('project', 'project:balance', 'project:evacuate', 'flavor', 'flavor:balance',
         'flavor:evacuate', 'metadata', 'metadata:balance')

CHECKS = ('traits', 'aggregates', 'image', 'hypervisor', 'cpu')

GROUP = cfg.OptGroup('kronos', title='Rebalancing', help="""
What Kronos balances, when, and how far it may go on its own.
""")

OPTS = [
    cfg.StrOpt('automation', mutable=True, default='observe', choices=[
        ('off', 'Plan nothing.'),
        ('observe', 'Plan and report. Nothing is moved.'),
        ('approve', 'Plan, and move after "kronos-manage plan approve".'),
        ('auto', 'Plan and move.'),
    ], help="""
How far Kronos may go without being asked, where no level was set by "kronos-manage
automation set". Start with ``observe`` and read some days of reports ("kronos-manage plan list");
go on to ``approve`` or ``auto`` when they are what you would have done yourself. The command needs
no restart and is heeded by every worker within seconds.
"""),
    cfg.StrOpt('max_automation', mutable=True, default='auto',
               choices=['off', 'observe', 'approve', 'auto'], help="""
The highest level that "kronos-manage automation set" may give, and that any aggregate has. Set it
to ``approve`` where nothing may ever be moved without an approval. What an operator orders by
"kronos-manage host drain" is done at every level. It has to be the same on every controller.
"""),
    cfg.StrOpt('run_in', default='conductor', choices=[
        ('conductor', 'nova-conductor plans and carries out, in its own process.'),
        ('daemons', 'kronos-engine plans and kronos-executor carries out, through the public API; '
                    'nova-conductor only makes live migrations atomic.'),
    ], help="""
Where planning and moving is done. ``daemons`` keeps both out of the control plane's processes and
needs the credentials of ``[kronos_nova]``; it must be set alike for conductors and daemons.
"""),
    cfg.DictOpt('aggregate_automation', default={}, help="""
Levels of ``automation`` for single aggregates, as ``name:level`` separated by commas, such as
``test:auto,database:approve``; the others have the level above. "kronos-manage automation set LEVEL
--aggregate NAME" goes before it; without ``--aggregate`` that command lowers these levels but never
raises them. ``off`` leaves an aggregate alone
without taking it out of ``aggregates``. The pool of hosts in no aggregate is ``_unassigned_``.
"""),
    cfg.ListOpt('aggregates', default=[], help="""
Names of the host aggregates to balance, separated by commas. Each is planned on its own and no
instance ever leaves its aggregate. With an empty list and ``include_unassigned_hosts`` off there is
nothing to do, which Kronos reports as an error when it starts.
"""),
    cfg.BoolOpt('include_unassigned_hosts', default=False, help="""
Balance the hosts that are in no aggregate too, as one more pool. Usual for a small cloud without
aggregates.
"""),
    cfg.StrOpt('policies_file', default='/etc/nova/kronos-policies.yaml', help="""
The policies: which PromQL says how loaded a host is, and what imbalance is worth a migration. Read
again when it changes. "kronos-test-config" checks it.
"""),
    cfg.IntOpt('evaluation_interval', mutable=True, default=300, min=1, max=604800, help="""
Seconds between two evaluations of an aggregate. Shorter than your Prometheus' scrape interval is of
no use; a start value is 300.
"""),
    cfg.IntOpt('aggregates_per_cycle', mutable=True, default=0, min=0, help="""
How many aggregates one worker plans at a time; others that are due are left to other workers, which
plan them side by side. Each of them reads the whole cloud, so this is worth it only where planning
takes longer than reading. 0 plans all that are due together.
"""),
    cfg.IntOpt('cycle_timeout', mutable=True, default=900, min=10, help="""
Seconds that a planning process may take for reading, planning and writing down. One that takes
longer is killed, the log says so, and each of its aggregates is tried again alone, after pauses
that grow to an hour. Raise it where reading the cloud takes minutes; a start value is three times
what a cycle takes, and more than ``[kronos_prometheus] total_timeout``.
"""),
    cfg.IntOpt('planner_niceness', mutable=True, default=19, min=0, max=19, help="""
By how much a planning process is nicer to others than the service that started it, as nice(1) has
it. With 19 it runs under the kernel's SCHED_IDLE too (see sched(7)): it has what others leave, and
RPCs of the nova-conductor do not wait for it. On a controller whose processors are always busy
nothing may be left: where evaluations take minutes, lower it; a start value is then 10.
"""),
    cfg.IntOpt('planner_idle_time', mutable=True, default=900, min=0, help="""
Seconds for which a planning process stays after a cycle, as the one to plan next: it has loaded
Nova, which takes seconds of the processor, and remembers what placement said. Longer than
``evaluation_interval``, or there is none left to plan next; 0 ends it after each cycle. While it
stays it needs no processor, and some 150 MiB and 1 KiB for every instance of memory.
"""),
    cfg.IntOpt('planner_max_cycles', mutable=True, default=200, min=1, help="""
After how many cycles a planning process ends and the next one starts. There is no need to
change it; lower it if the process should ever grow from cycle to cycle.
"""),
    cfg.IntOpt('planner_max_memory', mutable=True, default=2048, min=64, help="""
MiB of memory that a planning process may keep after a cycle; with more it ends, and the next cycle
begins in a new one. Lower it where controllers are short of memory: a start value is twice what the
process has after a cycle.
"""),
    cfg.IntOpt('cooldown', mutable=True, default=600, min=0, help="""
Seconds during which an aggregate is left alone after a plan for it was carried out, so that the
next decision sees the load as the moves left it. Make it longer than the window of your PromQL's
``rate()``.
"""),
    cfg.IntOpt('instance_cooldown', mutable=True, default=3600, min=0, help="""
Seconds during which an instance that was part of a plan is not moved again.
"""),
    cfg.IntOpt('instance_quarantine_seconds', mutable=True, default=86400, min=-1, help="""
Seconds during which an instance is not tried again after its migration failed for good; -1 until an
operator releases it ("kronos-manage quarantine remove"). A migration that Nova refused to begin is
none: see ``rejection_backoff_cycles``.
"""),
    cfg.BoolOpt('evacuate_disabled_hosts', mutable=True, default=False, help="""
Live migrate everything off hosts whose nova-compute service is disabled but up, before any
balancing. Turn it on where disabling a host means that it is to be serviced.
"""),
    cfg.BoolOpt('enforce_hard_affinity', mutable=True, default=False, help="""
Repair existing violations of ``affinity`` and ``anti-affinity`` server groups, before any
balancing.
"""),
    cfg.BoolOpt('enforce_soft_affinity', mutable=True, default=False, help="""
Repair existing violations of ``soft-affinity`` and ``soft-anti-affinity`` server groups, before any
balancing.
"""),
    cfg.StrOpt('repair_rules', mutable=True, default='all', choices=[
        ('off', 'Keep moves to the rules, and move nothing because of them.'),
        ('must', 'Move servers that are where a rule must not have them.'),
        ('all', 'Move also servers that should be elsewhere, where that pays.'),
    ], help="""
Which violations of the policies file's ``rules`` are repaired, before any balancing. By default,
``all``. A preference is repaired where the ``cost`` of the rule is more than what the move costs
and adds to the imbalance. Repairs are carried out at the level of ``repair_automation``.
Set it to ``off`` where rules are introduced in a cloud that violates them, and raise it step by
step.

Related options: ``repair_automation``, ``max_rule_repairs_per_cycle``.
"""),
    cfg.StrOpt('repair_automation', mutable=True, choices=['off', 'observe', 'approve', 'auto'],
               help="""
Level of automation of the repairs of violated ``rules``, and of moves after which a host may be
lost again (``failover_hosts``). By default, repairs have the level of their aggregate, and those of
rules are part of its plans. With another level they get plans of their own, with the purpose
``repair``: where their level is higher, rules are repaired before anything else is planned; where
it is lower, once nothing else is to be moved. "kronos-manage automation set --repairs" goes before
it, for all aggregates or for one; ``max_automation`` limits both. In an aggregate whose level is
``off`` nothing is repaired. Set it to ``approve`` where load may be
balanced without approval, and a new rule should not move servers before an operator has seen
which; to ``auto`` where only rules should move servers.

Related options: ``repair_rules``, ``max_rule_repairs_per_cycle``, ``automation``.
"""),
    cfg.IntOpt('max_rule_repairs_per_cycle', mutable=True, default=0, min=0, help="""
How many moves of a plan repair rules at most. By default, 0: as many as the plan has
(``max_migrations_per_cycle`` of the policies). Lower it where a new rule concerns many servers; 2
is an initial value.

Related options: ``repair_rules``, ``repair_automation``.
"""),
    cfg.ListOpt('failure_domain_key', default=[], help="""
Keys of host aggregates' metadata that name failure domains: parts of the cloud that fail as a
whole. By default, none, and no domain is known. Name the largest domains first, separated by
commas, such as ``room, rack``: a rack is then a rack of its room. A host has the values of the
aggregates that it is in; where two of these disagree, the value that sorts first holds. Set it
where rules are to keep servers in or out of racks, or apart by them.

Example: ``failure_domain_key = room, rack``, with ``openstack aggregate set --property rack=r3``

Related options: ``policies_file``, whose ``rules`` use the domains.
"""),
    cfg.BoolOpt('restrict_to_az', mutable=True, default=False, help="""
Never move an instance to a host of another availability zone. Only matters to an aggregate that
spans several.
"""),
    cfg.ListOpt('host_checks', mutable=True, default=list(CHECKS),
                item_type=types.String(choices=CHECKS), help="""
What is compared between a server and a host before a move is planned, so that no move is planned
that Nova refuses. By default, everything. Nova is asked about the moves of a plan in any case.

* ``traits``: required and forbidden traits of the flavor and the image
* ``aggregates``: the availability zone that a server is pinned to, and aggregates with the metadata
  ``trait:NAME=required`` (``[scheduler] enable_isolated_aggregate_filtering``)
* ``image``: architecture, hypervisor and its version that the image asks for
* ``hypervisor``: a destination has the hypervisor of the source, and no older version
* ``cpu``: a destination's processors have all features of the source's, unless Nova knows the model
  of the guest's
* ``numa``: NUMA cells with free CPUs, memory and pages for a server that needs cells

Leave ``hypervisor`` out where ``[workarounds] skip_hypervisor_version_check_on_lm`` is set, and
``cpu`` where ``[workarounds] skip_cpu_compare_on_dest`` is, where guests are emulated
(``virt_type = qemu``), or where guests have named models (``cpu_mode = custom``) and Kronos runs
outside Nova. A name that is left out is compared by Nova alone.
"""),
    cfg.StrOpt('spread_planner', mutable=True, default='spread', help="""
Which planner spreads load: ``spread`` (default) looks for the best plan within the budget,
``greedy`` takes the best single move again and again. Others may be installed as entry points of
``kronos_nova.planners``.
"""),
    cfg.StrOpt('pack_planner', mutable=True, default='pack', help="""
Which planner frees hosts: ``pack`` (default) frees the most hosts within the budget, ``ffd`` is the
simple first fit decreasing. Others may be installed as entry points of ``kronos_nova.planners``.
"""),
    cfg.FloatOpt('planning_time_limit', mutable=True, default=10.0, min=0.1, help="""
Seconds after which planning an aggregate stops and the best plan so far is used. The report then
has a warning that names this option. Before the limit, plans do not depend on the time. Only
clusters of thousands of hosts come near the default, and some that are nearly full and may have
long plans.
"""),
    cfg.FloatOpt('overload_ceiling', mutable=True, default=0.95, min=0.0, max=1.0, help="""
Load (0 to 1) that no host may pass in any policy while a plan is carried out, unless it already
did. A disabled host is emptied past it where no other host is left to take an instance. Packing
uses the ``capacity_threshold`` of each policy instead.
"""),
    cfg.FloatOpt('min_coverage', mutable=True, default=1.0, min=0.0, max=1.0, help="""
Part (0 to 1) of an aggregate's available hosts that must have a sample for a policy to count in a
cycle; below, the policy has no data. With less than 1, hosts without a sample are left out of the
plan, as source and as destination. Lower it in a large aggregate where some exporter is always
down: 0.9 is a start value.
"""),
    cfg.FloatOpt('min_known_servers', mutable=True, default=0.8, min=0.0, max=1.0, help="""
Part (0 to 1) of a host's running servers that must have a series in a policy's profile for the host
to be believed. By default, 0.8. A host below it has no score in that policy: it is neither a
destination nor a source, but for drains, and is named in reports. Lower it where some servers never
have a series; 0 believes every host. With a ``vm_profile_fallback`` other than ``skip``, a host is
believed unless none of its servers has a series while this part of those on other hosts has one.
Related options: ``server_grace``, ``min_coverage``.
"""),
    cfg.FloatOpt('profile_tolerance', mutable=True, default=0.1, min=0.0, help="""
Part of a host by which the profiles of its servers may together be more than 1.5 times its score,
and by which its score may be above 0 where all profiles are 0. By default, 0.1. Beyond, the servers
of the host are not moved for load, while its score still protects it as a destination. Raise it
where loads change faster than the queries average; 1 never doubts a profile.
"""),
    cfg.IntOpt('server_grace', mutable=True, default=600, min=0, help="""
Seconds after its launch or its last live migration during which a server need not have a series. By
default, 600. Set it to the longest ``rate()`` window of the policies and two scrape intervals. See
``min_known_servers``.
"""),
    cfg.BoolOpt('accept_partial_metrics', mutable=True, default=False, help="""
Plan with answers of which the source itself says that they are not whole: those that come with
warnings (Thanos names the stores that did not answer, Prometheus the remote storage) or are marked
as partial (VictoriaMetrics). Sums in them may lack a part of the load without any host missing, so
the policy has no data then, and instances take the policy's fallback where it was their profile.
Set it only where a store that never answers holds nothing that the policies ask for.
"""),
    cfg.FloatOpt('max_sample_age', mutable=True, default=300.0, min=1.0, help="""
Maximum age of a sample in seconds, by its timestamp. An older sample is none. Samples that are from
the future by more than this are used, and a warning says so: their age is not known. Prometheus
stamps the answer to a query with the time at which it computed it, so the option finds a cache that
serves old answers, and clocks that differ. By default, 300. Set it to some scrape intervals, and
above the difference between the clocks of controllers and of Prometheus.
"""),
    cfg.IntOpt('stabilization_cycles', deprecated_name='hold_cycles', mutable=True, default=1,
               min=1, help="""
How many evaluations in a row must find an aggregate imbalanced before its load is spread: 1 acts at
once, 3 lets a short peak pass. Neither packing, nor the evacuation of disabled hosts, nor the
repair of server groups waits for it.
"""),
    cfg.IntOpt('spread_interval', mutable=True, default=0, min=0, max=31536000, help="""
Seconds for which the load of an aggregate is not spread again after a plan did so. Hosts above the
``high`` of a policy are relieved, disabled hosts emptied and groups repaired meanwhile, after
``cooldown``. 0 spreads whenever there is an imbalance. Set it where hot hosts should be relieved at
once and evenness can wait: 21600 spreads at most four times a day. Of use only where policies have
``high``; otherwise ``cooldown`` does the same.
"""),
    cfg.FloatOpt('restraint', mutable=True, default=1.0, min=0.0, max=100.0, help="""
How reluctantly load is spread.

With 0, a plan is for the load of this moment, and goes as far as the planner can. With more, plans
are for the load that the next half hour is likely to bring, by what each instance was like in the
last day. Once a policy is above its threshold by that load, and by more than noise makes, the plan
takes the way to the threshold that copies least, and no move of it has to pay. Optional moves,
which make a host less likely to become full (above 0.9), are made only if they save more core-hours
than their copy costs. No instance goes back within a day to a host that it left.

The default, 1, has a fraction of the moves of 0 and fewer hosts that are full. Raise it where
migrations are dear: expected load then looks further ahead, and what is optional has to save as
many times more. Set it to 0 where evenness is all that counts, such as in tests.

It is fully of use some hours after Kronos was started for the first time, when it has seen what
instances are like. A replay uses what its snapshot recorded of that.

Related options: ``stabilization_cycles``, ``min_gain``, ``no_return_window``,
``max_moves_per_instance_and_week``.
"""),
    cfg.FloatOpt('min_gain', mutable=True, default=0.0, min=0.0, max=1.0, help="""
By how much every move of a spread plan must lower the combined imbalance (0 to 1), or with
``restraint`` what its two hosts have above or below where they are to be. The planner ``spread``
weighs each move's gain against it; of other planners' plans the end that gains less on
average is cut off. 0 takes every gain. Raise it where plans contain many moves that change little:
0.005 is a start value.
"""),
    cfg.FloatOpt('min_gain_per_gib', mutable=True, default=0.0, min=0.0, max=1.0, help="""
What is added to ``min_gain`` for every GiB of memory that a move copies, so that a large instance
moves only for a large gain. 0 makes all moves equal; 0.0001 is a start value.
"""),
    cfg.FloatOpt('min_gain_per_minute', mutable=True, default=0.0, min=0.0, max=1.0, help="""
What is added to ``min_gain`` for every minute that a move is expected to take: as long as this
instance took before, or else as long as others took for a GiB, and longer between two hosts where
moves took longer. 0 lets time cost nothing; 0.0005 is a start value.
"""),
    cfg.FloatOpt('min_gain_per_failure', mutable=True, default=0.0, min=0.0, max=1.0, help="""
What is added to ``min_gain`` for every move of this instance, and for every move between these two
hosts, that failed for good within ``experience_window``. 0 forgives all; 0.01 is a start value.
"""),
    cfg.IntOpt('experience_window', mutable=True, default=2592000, min=0, help="""
Seconds for which moves that ended count in what the next ones are expected to cost
(``min_gain_per_minute``, ``min_gain_per_failure``). Of no use longer than the journal keeps them.
"""),
    cfg.FloatOpt('soft_group_cost', min=0.0, max=1.0, help="""
What a spread plan must lower the combined imbalance by (0 to 1) for every member of a
``soft-affinity`` or ``soft-anti-affinity`` server group that it puts where the group does not want
it; what gains less is cut off the plan's end. Unset, the soft policies are as strict as the hard
ones, and only ``kronos-manage host drain`` passes them over where a host could not be emptied
otherwise. Once set, packing and the evacuation of disabled hosts pass them over. 0.02 is a start
value.
"""),
    cfg.FloatOpt('instance_cooldown_factor', mutable=True, default=2.0, min=1.0, max=100.0, help="""
How many times longer ``instance_cooldown`` gets each time that an instance is moved again, so that
one which keeps being chosen moves less and less. 1 keeps it as it is.
"""),
    cfg.IntOpt('instance_cooldown_max', mutable=True, default=86400, min=0, help="""
Seconds that ``instance_cooldown`` grows to at most. How often an instance was moved is forgotten
once it was left alone for as long.
"""),
    cfg.IntOpt('rejection_backoff_cycles', deprecated_name='refusal_rest_cycles', mutable=True,
               default=12, min=0, max=1000, help="""
For how many ``evaluation_interval`` an instance is left alone for which Nova refused three hosts
beforehand, or all there are: what it asks for (pinned CPUs, a device, a trait) does not come and go
by the minute, and asking again in every cycle costs calls of the scheduler. ``kronos-manage refusal
list`` shows these instances and Nova's reason. For as long, no instance of the same kind (flavor,
image, project, requirements and server groups) is moved to a host to which Nova refused to begin a
move. 0 asks again in the next cycle. Lower it where such instances should be tried soon after room
was made for them.
"""),
    cfg.IntOpt('no_return_window', deprecated_name='return_window', mutable=True, default=21600,
               min=0, help="""
Seconds during which an instance is not moved back to a host that it left in a move of Kronos or of
others: going from one host to another and back is the sign of two rules at odds. 0 permits it.
Needs the migrations that Nova keeps; a longer window than they are kept is of no use.
"""),
    cfg.IntOpt('max_moves_per_project', mutable=True, default=0, min=0, help="""
How many instances of one project a plan may move at most; 0 is no limit. What empties a disabled
host is not counted, here and in the three options below. Set it where a tenant with many servers of
one kind should not see all of them move at once: half of ``max_migrations_per_cycle`` is a start
value.
"""),
    cfg.IntOpt('max_moves_per_project_and_day', mutable=True, default=0, min=0, help="""
How many moves of one project's instances may be made within 24 hours at most, in all aggregates
together; 0 is no limit. Plans that wait for an approval are not counted before they start.
"""),
    cfg.IntOpt('max_moves_per_cause_and_day', mutable=True, default=0, min=0, help="""
How many moves of other instances the load of one may cause within 24 hours at most; 0 is no limit.
A move that spreads load is put down to the instance with the largest load on the host that it
leaves, unless it moves that very instance. So one that is busy now and idle then cannot move its
neighbours about all day: once its number is used, its host is left as loaded as it is, and only it
may still leave. 10 is a start value.
"""),
    cfg.IntOpt('max_moves_per_instance_and_week', mutable=True, default=4, min=0, help="""
How many times one instance may be moved within seven times 24 hours at most; 0 is no limit. What
``instance_cooldown`` and its factor make rare this makes certain. What empties a disabled host is
not held by it. Lower it where users notice migrations.
"""),
    cfg.IntOpt('max_moves_per_instance_and_day', mutable=True, default=0, min=0, help="""
How many times one instance may be moved within 24 hours at most; 0 is no limit. 1 is a start value.
"""),
    cfg.IntOpt('reserve_hosts', mutable=True, default=0, min=0, help="""
How many hosts' worth of room stays free in an aggregate, on the hosts that have instances: what the
largest of them can take, in every resource class. Packing stops there, and a disabled host is not
emptied into it. 1 lets one host fail with room for its instances elsewhere.
"""),
    cfg.ListOpt('slot_flavors', mutable=True, default=[], help="""
Names of flavors, or sizes such as ``4:8192:40`` (VCPUs, MiB, GiB), separated by commas, of which
evaluations count how many more servers fit in each aggregate. By default, none. The metric
``kronos_slots`` shows the counts, and "kronos-manage capacity --aggregate" says from their history
in about how many days nothing fits any more. Name the few flavors that say whether the cloud is
full; each takes time of ``failover_check_percent``. Ten count at most.

Related options: ``failover_check_percent``, which must not be 0; ``[kronos_database]
evaluations_retention_days`` for the history.
"""),
    cfg.IntOpt('failover_hosts', mutable=True, default=0, min=0, max=3, help="""
How many hosts may fail together without a plan having made that worse. By default, 0: plans do not
look at it. With 1, no plan ends so that a host cannot be lost any more whose servers, before the
plan, were proven to restart elsewhere; moves that would do so are left out. With 2 or 3 the same
holds for each pair, or three, of hosts too, which takes as many judgements as there are such sets.
A drain, a maintenance, or room that an operator asks for is refused where fewer hosts could be lost
after it, unless it is forced. What empties a disabled host is never left out. Where new servers
have made it worse, plans move others so that a host may be lost again, at the level of
``repair_automation``. 1 is an initial value.

Related options: ``failover_domains``, ``planning_time_limit``, ``repair_automation``.
"""),
    cfg.IntOpt('failover_domains', mutable=True, default=0, min=0, max=3, help="""
The same for failure domains: how many of one level of ``failure_domain_key`` may fail together
without a plan having made that worse. By default, 0: plans do not look at it. 1 is an initial value
where racks fail as a whole.

Related options: ``failure_domain_key``, ``failover_hosts``.
"""),
    cfg.IntOpt('failover_check_percent', mutable=True, default=5, min=0, max=100, help="""
Part of the time of evaluations, in percent, in which Kronos judges which hosts and failure domains
may be lost with all of their servers restarting elsewhere. The time is saved up from evaluation to
evaluation: where judging takes longer than one of them allows, some evaluations show the verdicts
of an earlier one. By default, 5. Raise it where ``kronos_failover_hosts`` counts hosts that were
not judged, or ``kronos_failover_judged_timestamp_seconds`` is old. 0 judges nothing.

Related options: ``failure_domain_key``, ``evaluation_interval``.
"""),
    cfg.ListOpt('never_move_projects', mutable=True, default=[], help="""
IDs of projects whose instances are never moved, separated by commas, not even off hosts that are
disabled or drained. A single instance is excluded by server metadata or flavor extra spec
``kronos:move``: ``never``, ``only-evacuate`` or ``always``. The strictest word counts, so neither
permits what this list forbids. See ``move_hints``.
"""),
    cfg.ListOpt('only_evacuate_projects', mutable=True, default=[], help="""
IDs of projects whose instances are only moved off disabled hosts, separated by commas.
"""),
    cfg.ListOpt('move_hints', mutable=True, default=['project', 'flavor', 'metadata'],
                item_type=types.String(choices=HINTS), help="""
Who has a say in whether a server is moved: ``project`` (the options ``never_move_projects`` and
``only_evacuate_projects``), ``flavor`` (its extra spec ``kronos:move``) and ``metadata`` (the same
key of the server's own metadata, which its owner sets). ``project`` and ``flavor`` are heeded
whatever a move is for; with ``:balance`` behind it one is heeded only when load is balanced, hosts
are packed or groups repaired, with ``:evacuate`` only when a host is emptied. ``metadata`` is never
heeded when a host is emptied, nor is a server's lock: an owner cannot keep a host from being
serviced. Leave ``metadata`` out where tenants may not decide on placement at all.

Example: ``move_hints = project, flavor:balance`` moves servers of every flavor off disabled hosts.
"""),
    cfg.MultiStrOpt('maintenance_window', mutable=True, default=[], help="""
When moves may be made: ``AGGREGATE; CRON; MINUTES; TIME ZONE``, the cron expression (five fields)
telling when the window opens and MINUTES how long it stays open; without a time zone it is UTC. The
option may be given several times. ``*`` stands for every aggregate; an aggregate that no window
names may be moved about at any time. Outside its windows an aggregate is evaluated and reported,
but nothing is planned, and no planned move is started; moves in progress are carried to their end.
Where clocks are put back, an hour that comes twice counts the first time; where they are put
forward, a window in the hour that is left out opens as much later. A window that can never open is
refused.

Example: ``maintenance_window = gpu; 0 22 * * sat; 360; Europe/Berlin``
"""),
    cfg.StrOpt('coordination_url', secret=True, help="""
Where the conductors agree who plans an aggregate: a tooz URL, such as
``etcd3+http://controller:2379``, ``redis://controller:6379`` or
``mysql://user:password@controller/kronos``. Unset, a lock file under ``[DEFAULT] state_path`` is
used, which serves one controller with any number of workers; with several controllers it must be
set. A lock of MySQL's lasts as long as its connection, on which nothing is said meanwhile: let the
server's ``wait_timeout``, and those of proxies before it, be longer than ``cycle_timeout``.
"""),
    cfg.ListOpt('notification_topics', default=[], help="""
Topics on which Kronos tells other programs what it does, as versioned notifications: plans, moves,
levels and drains; see "Notifications" in the documentation. They go to the broker of
``[oslo_messaging_notifications] transport_url``. Empty, nothing is sent. Use a topic that has a
listener, such as ``kronos_notifications``: messages that are not fetched stay in the broker. Set it
to the same in the nova.conf of every controller, also where only commands are run.
"""),
    cfg.IntOpt('notification_backlog', mutable=True, default=10000, min=100, help="""
How many notifications wait for a broker that is away; the oldest beyond that are dropped, which the
log tells and a gap in the sequence numbers shows. A move makes two: the default is 5,000 moves, and
about 15 MB in the control database.
"""),
    cfg.StrOpt('atomic_moves', mutable=True, default='all', choices=[
        ('all', 'Every live migration in this cloud changes its allocations in one transaction.'),
        ('kronos', 'Only those that Kronos asks for; others take the way of Nova.'),
        ('off', 'None; Nova\'s own task does all of them.'),
    ], help="""
Which live migrations use the atomic task: the source's allocation goes to the migration and the
destination's to the instance in one request to placement, so that neither is ever missing or
counted twice.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> Sequence[cfg.Opt]:
    return OPTS
