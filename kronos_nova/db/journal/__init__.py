"""The journal, in which every plan and move is recorded before anything outside the control
database changes."""

from kronos_nova.db.engine import Database
from kronos_nova.db.journal import moves
from kronos_nova.db.journal import plans
from kronos_nova.db.journal import queue


class Journal(plans.Plans, queue.Queue, moves.Moves):
    """The journal of plans and moves in the control database.

    :param worker: name of this process, recorded as the owner of moves that it accepts
    """

    def __init__(self, database: Database, worker: str):
        self.database = database
        self.worker = worker
