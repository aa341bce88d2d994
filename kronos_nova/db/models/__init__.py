"""The tables of the control database: the journal of plans and moves, and other data that is kept
from one cycle to the next.

Plans and moves may be kept for years, so each column that is queried every few seconds has an
index.

The class of a table is imported when it is first used, because importing all classes takes a
seventh of the time of a command.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    import sqlalchemy as sa

    from kronos_nova.db.models.base import Base
    from kronos_nova.db.models.cooldowns import CooldownRow
    from kronos_nova.db.models.cooldowns import QuarantineRow
    from kronos_nova.db.models.cooldowns import RefusalRow
    from kronos_nova.db.models.cycles import CycleRow
    from kronos_nova.db.models.drains import DrainRow
    from kronos_nova.db.models.holds import HoldRow
    from kronos_nova.db.models.journal import MoveEventRow
    from kronos_nova.db.models.journal import MoveRow
    from kronos_nova.db.models.journal import PlanRow
    from kronos_nova.db.models.journal import ReportRow
    from kronos_nova.db.models.loads import AggregateLoadStatsRow
    from kronos_nova.db.models.loads import EvaluationRow
    from kronos_nova.db.models.loads import HostLoadsRow
    from kronos_nova.db.models.loads import ScoreRow
    from kronos_nova.db.models.maintenances import MaintenanceRow
    from kronos_nova.db.models.names import ServerNameRow
    from kronos_nova.db.models.notifications import CounterRow
    from kronos_nova.db.models.notifications import NotificationRow
    from kronos_nova.db.models.repairs import RepairRow
    from kronos_nova.db.models.repairs import TaskRow
    from kronos_nova.db.models.sums import LoadSumRow
    from kronos_nova.db.models.sums import MoveSumRow
    from kronos_nova.db.models.switches import SwitchEventRow
    from kronos_nova.db.models.switches import SwitchRow
    from kronos_nova.db.models.workers import LeaseRow
    from kronos_nova.db.models.workers import SerializationLockRow
    from kronos_nova.db.models.workers import WorkerRow

__all__ = (
    'AggregateLoadStatsRow', 'Base', 'CooldownRow', 'CounterRow', 'CycleRow', 'DrainRow',
    'EvaluationRow', 'HoldRow', 'HostLoadsRow', 'LeaseRow', 'LoadSumRow', 'MaintenanceRow',
    'MoveEventRow', 'MoveRow', 'MoveSumRow', 'NotificationRow', 'PlanRow', 'QuarantineRow',
    'RefusalRow', 'RepairRow', 'ReportRow', 'ScoreRow', 'SerializationLockRow', 'ServerNameRow',
    'SwitchEventRow', 'SwitchRow', 'TaskRow', 'WorkerRow')

HOMES = {
    'Base': 'base',
    'CooldownRow': 'cooldowns',
    'QuarantineRow': 'cooldowns',
    'RefusalRow': 'cooldowns',
    'CycleRow': 'cycles',
    'DrainRow': 'drains',
    'HoldRow': 'holds',
    'MoveEventRow': 'journal',
    'MoveRow': 'journal',
    'PlanRow': 'journal',
    'ReportRow': 'journal',
    'AggregateLoadStatsRow': 'loads',
    'EvaluationRow': 'loads',
    'HostLoadsRow': 'loads',
    'ScoreRow': 'loads',
    'MaintenanceRow': 'maintenances',
    'ServerNameRow': 'names',
    'CounterRow': 'notifications',
    'NotificationRow': 'notifications',
    'RepairRow': 'repairs',
    'TaskRow': 'repairs',
    'LoadSumRow': 'sums',
    'MoveSumRow': 'sums',
    'SwitchEventRow': 'switches',
    'SwitchRow': 'switches',
    'LeaseRow': 'workers',
    'SerializationLockRow': 'workers',
    'WorkerRow': 'workers',
}
"""{class of a table: module of this package that defines the class}"""


def metadata() -> 'sa.MetaData':
    """Return the metadata of all tables."""
    for home in sorted({*HOMES.values()}):
        importlib.import_module(f'{__name__}.{home}')
    return importlib.import_module(f'{__name__}.base').Base.metadata


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    found = getattr(importlib.import_module(f'{__name__}.{HOMES[name]}'), name)
    globals()[name] = found
    return found
