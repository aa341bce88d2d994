"""The last evaluation of each aggregate."""

import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped
from sqlalchemy.orm import mapped_column

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

    aggregate: Mapped[str] = mapped_column(sa.String(255), primary_key=True)
    started_at: Mapped[datetime.datetime] = mapped_column(Timestamp, nullable=False)
    finished_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    worker: Mapped[str] = mapped_column(sa.String(255), nullable=False)
    outcome: Mapped[str | None] = mapped_column(sa.String(16))
    imbalanced_cycles: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=0)
    report: Mapped[str | None] = mapped_column(CompressedText)
    failures: Mapped[int] = mapped_column(sa.Integer, nullable=False, default=0, server_default='0')
    not_before: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    good_at: Mapped[datetime.datetime | None] = mapped_column(Timestamp)
    doubted: Mapped[str | None] = mapped_column(Text)
