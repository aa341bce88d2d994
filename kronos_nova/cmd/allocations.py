"""``kronos-manage allocations``: find wrong allocations, repair them, undo repairs."""

import argparse
import collections
import time
from collections.abc import Callable
from collections.abc import Iterable
from typing import TextIO

from oslo_config import cfg
from oslo_db import exception as db_exc
from rich.console import Console
from rich.progress import BarColumn
from rich.progress import MofNCompleteColumn
from rich.progress import Progress
from rich.progress import TimeRemainingColumn

from kronos_client.cli import arguments
from kronos_client.cli import columns
from kronos_client.cli import command
from kronos_nova import exception
from kronos_nova import plural
from kronos_nova.cmd import database
from kronos_nova.db import counters
from kronos_nova.db import engine as db_engine
from kronos_nova.db import holds
from kronos_nova.db import migrate
from kronos_nova.db import repairs as repairs_db
from kronos_nova.db.error_text import error_text
from kronos_nova.objects import hold
from kronos_nova.objects import repair as repairs
from kronos_nova.placement import audit
from kronos_nova.placement import heal
from kronos_nova.placement import holdings
from kronos_nova.placement.room_allocations import RoomAllocations
from kronos_nova.plugin import standalone

CLEAN, ERROR, FOUND, LEFT = 0, 1, 3, 4
"""Exit codes of ``kronos-manage allocations``. CLEAN: no allocation is wrong. ERROR: the audit
failed. FOUND: some allocations are wrong, or a cell could not be audited. LEFT: after a repair,
some allocations are still wrong, or a cell could not be audited. The codes are documented in
allocations.rst. Fixed: scripts depend on the codes."""

SILENT = 'silent_cell'
"""Name of the finding by which monitoring gets the number of cells that could not be audited. A
cell cannot be audited if its database does not answer."""

Rooms = dict[str, audit.KeptRoom]
"""{uuid of a consumer in placement: KeptRoom}"""


class Cloud:
    """Access to placement and to Nova's records. The access is configured in nova.conf."""

    def __init__(self, options: argparse.Namespace):
        standalone.load_nova(options.config_file, options.config_dir)
        # Imported late: these modules import Nova, which has to be configured first.
        from kronos_nova.plugin import nova_records
        from kronos_nova.plugin import placement

        self.placement = placement.client()
        self.nova = nova_records.CellRecords(self.placement)

    def audit(self, limits: audit.AuditLimits, stderr: TextIO,
              rooms: Callable[[], Rooms | None]) -> tuple[holdings.Holdings, audit.Audit]:
        """Audit the allocations. If ``stderr`` is a terminal, show the progress there.

        :param limits: AuditLimits
        :param rooms: callable that returns {uuid of a consumer in placement: KeptRoom}. Such a
            consumer keeps room on a host for future servers
        :returns: pair (Holdings with the allocations that were read, Audit with the findings)
        """
        with _progress(stderr) as progress:
            held = holdings.read(self.placement, progress.track)
            return held, audit.audit(held, self.nova, limits, progress.track, rooms,
                                     RoomAllocations(self.placement).is_ours)


def _progress(stream: TextIO) -> Progress:
    return Progress('{task.description}', BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                    console=Console(file=stream), transient=True, disable=not stream.isatty())


class _Auditing(command.Lister):
    """The base class of the commands "audit" and "heal". It adds the arguments for time limits,
    makes the audit, and determines the exit code."""

    exit_code = CLEAN

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--grace', type=arguments.seconds, default=60, metavar='SECONDS',
            help='Leave out instances and migrations that changed in the last SECONDS seconds, '
                 'because Nova may still be working on them; default: %(default)s.')
        parser.add_argument(
            '--stalled-after', type=arguments.seconds, default=3600, metavar='SECONDS',
            help='Report a live migration as stalled if its record has not changed for SECONDS '
                 'seconds; default: %(default)s.')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        super().run(parsed_args)
        return self.exit_code

    def _audit(self, parsed_args: argparse.Namespace) -> tuple[holdings.Holdings, audit.Audit]:
        self.cloud = Cloud(self.app.options)
        self.limits = audit.AuditLimits(grace=parsed_args.grace, stalled=parsed_args.stalled_after)
        held, result = self.cloud.audit(self.limits, self.app.stderr, self._rooms)
        self.app.stderr.write(
            f'{result.instances} instances and {result.consumers} consumers were audited: '
            f'{plural.count(len(result.findings), "finding")}; {len(result.in_flight)} left out, '
            'as Nova is working on them\n')
        if result.silent:
            self.app.stderr.write(
                f'Not audited, as the databases do not answer: cell '
                f'{", cell ".join(result.silent)}\n')
        return held, result

    def _rooms(self) -> Rooms | None:
        """Return {uuid of a consumer in placement: KeptRoom} for the consumers that keep room for
        future servers. Return None if the control database cannot be read."""
        try:
            found = holds.Holds(database.control_database(self.app.conf)).consumers()
        except (db_exc.DBError, exception.KronosException) as error:
            self.app.stderr.write('Allocations that keep room for new servers are not audited, as '
                                  'the control database cannot be read: '
                                  f'{db_engine.first_line(error)}\n')
            return None
        return {uuid: audit.KeptRoom(
            hold=each.uuid, host=host, is_kept=each.state == hold.HELD,
            has_ended=each.state not in hold.OPEN) for uuid, (each, host) in found.items()}


class Audit(_Auditing):
    """Find leaked, doubled, missing and misplaced allocations of the instances of all cells. The
    command changes no allocation. It records the number of findings for kronos-exporter.

    Exit codes: 0 nothing is wrong; 1 the audit could not be done; 3 allocations are wrong, or a
    cell could not be audited because its database does not answer.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        _held, result = self._audit(parsed_args)
        findings = result.findings
        self._note(result)
        self.exit_code = FOUND if findings or result.silent else CLEAN
        return (('Kind', 'Instance', 'Host', 'Evidence', 'Remedy'),
                [(each.kind, each.instance, each.host or '', each.evidence, each.remedy)
                 for each in findings])

    def _note(self, result: audit.Audit) -> None:
        """Record the number of findings of each kind for monitoring. If the record cannot be made,
        the command prints a message. Its exit code does not change."""
        found = collections.Counter(each.kind for each in result.findings)
        try:
            counters.Counters(database.control_database(self.app.conf)).note_audit(
                {kind: found[kind] for kind in audit.KINDS} | {SILENT: len(result.silent)},
                time.time())
        except (db_exc.DBError, exception.KronosException) as error:
            self.app.stderr.write('The number of findings is not recorded for kronos-exporter: '
                                  f'{db_engine.first_line(error)}\n')


class Heal(_Auditing):
    """Audit the allocations, and repair those that are wrong. Without --apply, the command only
    shows the repairs that it would make.

    Each repair is recorded, and "allocations undo" reverts it.

    Exit codes: 0 nothing was wrong, or everything is repaired; 1 the audit could not be done; 3
    without --apply: allocations are wrong; 4 with --apply: some findings were not repaired. Codes 3
    and 4 are also used where a cell could not be audited because its database does not answer.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--apply', action='store_true',
                            help='Make the repairs, instead of only showing them.')
        parser.add_argument(
            '--unknown', action='store_true',
            help='Also remove the allocations of uuids that belong to no instance and no '
                 'migration in Nova.')
        parser.add_argument('--instance', action='append', metavar='UUID',
                            help='Repair only the allocations of this instance; may be repeated.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        held, result = self._audit(parsed_args)
        findings = result.findings
        chosen = [each for each in findings if self._is_chosen(each, parsed_args)]
        outcomes = self._apply(held, chosen) if parsed_args.apply else [
            heal.Outcome(finding=each, detail=each.remedy,
                         state='would heal' if each.can_be_healed else repairs.SKIPPED)
            for each in chosen]
        self.exit_code = self._judge(result, outcomes, parsed_args.apply)
        return (('Kind', 'Instance', 'Host', 'State', 'Detail', 'Repair'),
                [(each.finding.kind, each.finding.instance, each.finding.host or '', each.state,
                  each.detail, each.repair or '') for each in outcomes])

    @staticmethod
    def _is_chosen(finding: audit.Finding, parsed_args: argparse.Namespace) -> bool:
        if parsed_args.instance and finding.instance not in parsed_args.instance:
            return False
        return finding.kind != audit.UNKNOWN or parsed_args.unknown

    def _apply(self, held: holdings.Holdings,
               findings: Iterable[audit.Finding]) -> list[heal.Outcome]:
        healer = heal.Healer(self.cloud.placement, self.cloud.nova, held, self.limits,
                             _journal(self.app.conf), lambda: self._rooms() or {})
        return [self._healed(healer, each) for each in findings]

    @staticmethod
    def _healed(healer: heal.Healer, finding: audit.Finding) -> heal.Outcome:
        """Return the Outcome of a repair. An error of the control database, in which the repair is
        recorded, must not hide the outcomes of the other repairs."""
        try:
            return healer.heal(finding)
        except db_exc.DBError as error:
            return heal.Outcome(finding=finding, state=repairs.FAILED, detail=error_text(error))

    @staticmethod
    def _judge(result: audit.Audit, outcomes: Iterable[heal.Outcome], is_applied: bool) -> int:
        if not result.findings and not result.silent:
            return CLEAN
        if not is_applied:
            return FOUND
        healed = [each for each in outcomes if each.state == repairs.HEALED]
        is_done = len(healed) == len(result.findings) and not result.silent
        return CLEAN if is_done else LEFT


class Repairs(command.Lister):
    """List the repairs of allocations, oldest first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--instance', metavar='UUID',
                            help='List only repairs of this instance.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> command.Table:
        return (('Repair', 'Created At', 'Kind', 'Instance', 'State', 'Evidence', 'Detail'),
                [(row.uuid, columns.Time(row.created_at), row.kind,
                  row.instance_uuid, row.state, row.evidence, row.detail)
                 for row in _journal(self.app.conf).list(parsed_args.instance)])


class Undo(command.Command):
    """Undo a repair: restore the allocations as they were before the repair.

    The command is refused if any of these allocations has changed since the repair.

    Exit codes: 0 the repair is undone; 1 the repair is not undone, or it is undone and the control
    database could not record this. The error says which.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('repair', metavar='REPAIR',
                            help='Uuid of the repair, as "allocations repairs" shows it.')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        cloud = Cloud(self.app.options)
        heal.undo(cloud.placement, _journal(self.app.conf), parsed_args.repair)
        self.say(f'Repair {parsed_args.repair} is undone.')


def _journal(conf: cfg.ConfigOpts) -> repairs_db.Repairs:
    engine = db_engine.control_engine(conf)
    migrate.check(engine, migrate.CONTROL)
    database = db_engine.Database(engine)
    return repairs_db.Repairs(database, database.utcnow)
