"""The last evaluation of each aggregate."""

import sqlalchemy as sa

from kronos_nova.db.column_types import CompressedText
from kronos_nova.db.column_types import Text
from kronos_nova.db.column_types import Timestamp
from kronos_nova.db.models.base import Base


class CycleRow(Base):
    """The last evaluation of an aggregate: its start, its end and its result.

    ``outcome`` and ``report`` are the results of the last evaluation that ended. The report names
    every instance that is not moved, by its uuid. ``imbalanced_cycles`` is the number of
    evaluations in a row that found a policy above its threshold. ``failures`` is the number of
    evaluations in a row that did not end, because their process died. The next evaluation does not
    begin before ``not_before``. ``good_at`` is the end of the last evaluation that had enough data
    for planning. ``doubted`` is JSON. It has the pairs of policy and host whose score failed a
    check in the last evaluation that ended.
    """

    __tablename__ = 'cycles'

    aggregate = sa.Column(sa.String(255), primary_key=True)
    started_at = sa.Column(Timestamp, nullable=False)
    finished_at = sa.Column(Timestamp)
    worker = sa.Column(sa.String(255), nullable=False)
    outcome = sa.Column(sa.String(16))
    imbalanced_cycles = sa.Column(sa.Integer, nullable=False, default=0)
    report = sa.Column(CompressedText)
    failures = sa.Column(sa.Integer, nullable=False, default=0, server_default='0')
    not_before = sa.Column(Timestamp)
    good_at = sa.Column(Timestamp)
    doubted = sa.Column(Text)
