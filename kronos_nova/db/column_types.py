"""Column types that work in the same way in SQLite, MySQL, MariaDB and PostgreSQL."""

import zlib

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from kronos_nova import clock

Text = sa.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
Blob = sa.LargeBinary().with_variant(mysql.LONGBLOB(), 'mysql', 'mariadb')


class Timestamp(sa.TypeDecorator):
    """A time, to the microsecond. Values in Python have a time zone. Stored values are in UTC,
    without a time zone.

    :raises ValueError: a time without a zone is written, or is compared with the column
    """

    impl = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), 'mysql', 'mariadb')
    cache_ok = True

    def process_bind_param(self, value, dialect):
        return None if value is None else clock.naive(value)

    def process_result_value(self, value, dialect):
        return None if value is None else clock.aware(value)


class CompressedText(sa.TypeDecorator):
    """A text that is compressed in the database. The type is used for reports, which contain many
    repetitions."""

    impl = Blob
    cache_ok = True

    def process_bind_param(self, value, dialect):
        return None if value is None else zlib.compress(value.encode())

    def process_result_value(self, value, dialect):
        return None if value is None else zlib.decompress(value).decode()
