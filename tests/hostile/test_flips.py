"""A file of claims with any content: nova-compute opens it, or begins another one."""

import os
import pathlib
import random
import sqlite3

import fixtures
import hypothesis
import testtools
from hypothesis import strategies as st

from kronos_nova.claims import message
from kronos_nova.claims import sqlite
from tests.hostile import flips
from tests.unit.planners import clouds

COLUMNS = ('host', 'node', 'instance_uuid', 'vcpus', 'memory_mb', 'disk_gb', 'pci', 'resize_target',
           'created_at', 'state', 'migration_uuid', 'numa_topology')
VALUES = st.one_of(
    st.integers(-2 ** 63, 2 ** 63 - 1), st.floats(), st.binary(max_size=40), st.text(max_size=40),
    st.sampled_from((flips.HOST, 'claimed', 'prepared', '[]', '["0000:81:00.1"]', '[[', 'null', '',
                     '2026-03-01T12:00:00+00:00', '9999-12-31T23:59:59+00:00', 0, 1)))


class ContentTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.files = flips.ClaimFiles(pathlib.Path(self.useFixture(fixtures.TempDir()).path))

    def outcomes_of(self, content):
        verdict = flips.Verdict()
        self.files.judge((), verdict, content)
        self.assertEqual([], verdict.wrong)
        return verdict.outcomes

    def test_bits_flipped_anywhere(self):
        verdict = flips.claims(400)
        self.assertEqual([], verdict.wrong)
        self.assertLess(200, verdict.outcomes['set aside'])
        self.assertLess(20, verdict.outcomes['believed'])

    def test_a_header_that_forbids_writing(self):
        verdict = flips.Verdict()
        for bit in range(18 * 8, 20 * 8):
            self.files.judge((bit,), verdict)
        self.assertEqual([], verdict.wrong)

    def test_random_bytes(self):
        drawn = random.Random(1)
        for size in (0, 1, 15, 16, 100, 4096, 100_000):
            self.outcomes_of(drawn.randbytes(size))
            self.outcomes_of(self.files.content[:100] + drawn.randbytes(size))
            self.outcomes_of(self.files.content[:size])

    def test_the_schema_has_bytes_that_are_no_text(self):
        place = self.files.content.index(b'CREATE TABLE') + 20
        self.assertEqual(['set aside'], list(self.outcomes_of(
            self.files.content[:place] + b'\xff' + self.files.content[place + 1:])))

    @clouds.judges(4)
    @hypothesis.settings(max_examples=60, deadline=None)
    @hypothesis.given(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES)), max_size=3))
    def test_random_rows(self, rows):
        self.files.place(self.files.content)
        connection = sqlite3.connect(self.files.path)
        for row in rows:
            connection.execute(f'INSERT OR IGNORE INTO claims ({", ".join(COLUMNS)}) '
                               f'VALUES ({", ".join("?" * len(COLUMNS))})', list(row.values()))
        connection.commit()
        connection.close()
        store = self.files.store()
        self.addCleanup(store.close)
        store.open()
        claims = store.load()
        self.judged += len(claims)
        for claim in claims:
            self.assertIsInstance(claim.amount.vcpus, int)
            self.assertIn(claim.state, (message.CLAIMED, message.PREPARED))

    def test_what_is_no_file_is_set_aside(self):
        for make in (os.mkdir, os.mkfifo):
            for suffix in ('', '-wal'):
                self.files.place(self.files.content)
                path = f'{self.files.path}{suffix}'
                if not suffix:
                    os.unlink(path)
                make(path)
                store = self.files.store()
                self.assertFalse(store.open())
                self.assertEqual([], store.load())
                store.close()

    def test_more_claims_than_any_host_has(self):
        self.patch(sqlite, 'MOST_ROWS', 10)
        self.assertEqual(['set aside'], list(self.outcomes_of(self.files.content)))

    def test_a_file_that_takes_too_long_is_set_aside(self):
        self.patch(sqlite, 'MOST_SECONDS', -1)
        self.patch(sqlite, '_STEPS', 1)
        self.assertEqual(['set aside'], list(self.outcomes_of(self.files.content)))
