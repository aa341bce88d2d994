"""Column types that work in the same way in SQLite, MySQL, MariaDB and PostgreSQL."""

import datetime
import zlib

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kronos_nova import clock

Text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
Blob = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')


class Timestamp(sa.TypeDecorator):
    """A type of columns with times, to the microsecond. In Python, the times have a time zone. In
    the database, they are stored in UTC, without a time zone.

    :raises ValueError: a time without a zone is written, or is compared with the column
    """

    impl = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None,
                           dialect: sa.Dialect) -> datetime.datetime | None:
        return None if value is None else clock.naive(value)

    def process_result_value(self, value: datetime.datetime | None,
                             dialect: sa.Dialect) -> datetime.datetime | None:
        return None if value is None else clock.aware(value)


class CompressedText(sa.TypeDecorator):
    """A type of columns with texts that are compressed in the database. It is used for reports,
    because their texts have many repetitions."""

    impl = Blob
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> bytes | None:
        return None if value is None else zlib.compress(value.encode())

    def process_result_value(self, value: bytes | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else zlib.decompress(value).decode()
