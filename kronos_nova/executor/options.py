"""The options of ``[kronos_executor]`` as plain values."""

import dataclasses

from oslo_config import cfg

from kronos_nova.objects import move as moves

ABORT = 'abort'
FORCE_COMPLETE = 'force_complete'


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """The options of ``[kronos_executor]``, and the options of ``[kronos]`` that the executor
    needs. Durations are in seconds."""

    caps: moves.Caps
    migration_timeout: float
    timeout_action: str
    max_retries: int
    retry_interval: float
    request_grace: float
    message_grace: float
    worker_timeout: float
    stale_plan_age: float
    cooldown: float
    quarantine: float

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> 'ExecutorOptions':
        group = conf.kronos_executor
        return cls(
            caps=moves.Caps(total=group.max_concurrent_migrations,
                            per_source=group.max_concurrent_per_source,
                            per_destination=group.max_concurrent_per_destination),
            migration_timeout=group.migration_timeout, timeout_action=group.timeout_action,
            max_retries=group.max_retries, retry_interval=group.retry_interval,
            request_grace=group.request_grace, message_grace=group.message_grace,
            worker_timeout=group.worker_timeout, stale_plan_age=group.stale_plan_age,
            cooldown=conf.kronos.cooldown, quarantine=conf.kronos.instance_quarantine_seconds)
