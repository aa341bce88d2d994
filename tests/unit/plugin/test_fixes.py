"""The list of fixes is the same in the code, in the configuration and in the documentation."""

import ast
import logging
import os
import pathlib
import re
import threading
from unittest import mock

import fixtures
import nova.conf
import oslo_messaging as messaging
import testtools
from nova import context as nova_context
from nova.compute import manager
from nova.conductor.tasks import migrate
from nova.objects import base as objects_base
from nova.scheduler.client import report
from oslo_config import fixture as config_fixture

from kronos_nova import conf as kronos_conf
from kronos_nova.conf import fixes
from kronos_nova.plugin import conductor
from kronos_nova.plugin.fixes import cold_migration_retry
from kronos_nova.plugin.fixes import confirmation_retry
from kronos_nova.plugin.fixes import fork_safety
from kronos_nova.plugin.fixes import image_credentials
from kronos_nova.plugin.fixes import libvirt_connection
from kronos_nova.plugin.fixes import log_filters
from kronos_nova.plugin.fixes import post_migration_retry
from kronos_nova.plugin.fixes import request_clock
from kronos_nova.plugin.fixes import status_retry

ROOT = pathlib.Path(__file__).parents[3]
ROOM = ROOT / 'kronos_nova' / 'plugin' / 'fixes'
PARTS = {'guest_state', 'migration_checkpoint'}
"""Modules that a fix consists of in addition to its own."""


class ListTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.options = {option.name for option in fixes.OPTS}

    def test_each_fix_is_a_module_with_an_option_that_is_on(self):
        modules = {path.stem for path in ROOM.glob('*.py')} - {'__init__'} - PARTS
        self.assertEqual(modules, self.options)
        self.assertEqual({True}, {option.default for option in fixes.OPTS})

    def test_each_module_says_its_bug_and_its_option(self):
        for name in self.options:
            text = ast.get_docstring(ast.parse((ROOM / f'{name}.py').read_text()))
            self.assertRegex(text, r'Launchpad: (bug \d+|no bug is known)')
            self.assertIn(f'[kronos_fixes] {name}``', text)

    def test_the_documentation_has_a_row_for_each(self):
        text = (ROOT / 'doc' / 'source' / 'fixes.rst').read_text()
        rows = re.findall(r'^   \* - ``(\w+)``$', text, re.MULTILINE)
        self.assertEqual(sorted(self.options), rows)


class SwitchedOffTest(testtools.TestCase):
    """Each fix that is off leaves Nova as it is; those of migrations are tested in a cloud."""

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(nova.conf.CONF))
        kronos_conf.register_opts(nova.conf.CONF)

    def switch_off(self, name):
        self.conf.config(group='kronos_fixes', **{name: False})

    def switch_on(self, name):
        self.conf.config(group='kronos_fixes', **{name: True})

    def test_fork_safety(self):
        self.switch_off('fork_safety')
        self.useFixture(fixtures.MockPatchObject(os, 'register_at_fork'))
        fork_safety.install()
        self.assertEqual([], os.register_at_fork.mock_calls)
        self.assertTrue(hasattr(report, 'PLACEMENTCLIENT'))

    def test_log_filters(self):
        self.switch_off('log_filters')
        name = 'kronos-test-library'
        with mock.patch.dict(log_filters.NOISE, {name: 'noise'}):
            log_filters.install()
        self.assertEqual([], logging.getLogger(name).filters)

    def test_request_clock(self):
        self.switch_off('request_clock')
        with mock.patch('kronos_nova.inventory.request_clock.install') as installed:
            request_clock.install()
            self.assertEqual([], installed.mock_calls)
            self.switch_on('request_clock')
            request_clock.install()
        self.assertEqual(1, installed.call_count)

    def test_libvirt_connection(self):
        self.switch_off('libvirt_connection')
        lock = threading.Lock()

        class Manager:
            def __init__(self, compute_driver):
                self.driver = mock.Mock(_host=mock.Mock(_wrapped_conn_lock=lock))

        class SurvivingManager(libvirt_connection.SurvivesLibvirt, Manager):
            pass

        self.assertIs(lock, SurvivingManager().driver._host._wrapped_conn_lock)

    def test_post_migration_retry(self):
        stock = mock.sentinel.stock
        with mock.patch.object(post_migration_retry, 'PatientComputeAPI'):
            self.assertIsNot(stock, post_migration_retry.compute_api(stock))
        self.switch_off('post_migration_retry')
        self.assertIs(stock, post_migration_retry.compute_api(stock))

    def test_status_retry(self):
        self.switch_off('status_retry')
        nova_s = self.useFixture(fixtures.MockPatchObject(
            manager.ComputeManager, '_set_migration_status',
            side_effect=messaging.MessagingTimeout)).mock
        self.assertRaises(messaging.MessagingTimeout,
                          status_retry.RetriesStatus._set_migration_status, None, 'error')
        self.assertEqual(1, nova_s.call_count)

    def test_image_credentials(self):
        self.switch_off('image_credentials')
        context = nova_context.get_admin_context()
        with mock.patch.object(image_credentials.service_auth, 'get_service_auth_plugin') as asked:
            image_credentials._as_nova(context)
        self.assertEqual([], asked.mock_calls)

    def test_cold_migration_rollback(self):
        self.switch_off('cold_migration_rollback')
        tasks = conductor.KronosComputeTaskManager
        task = tasks._build_cold_migrate_task(mock.Mock(), *[None] * 6)
        self.assertIs(migrate.MigrationTask.rollback, type(task).rollback)

    def test_cold_migration_retry(self):
        self.switch_off('cold_migration_retry')
        client = mock.Mock()
        self.useFixture(fixtures.MockPatchObject(
            objects_base.NovaObject, 'indirection_api', client))
        cold_migration_retry.install()
        self.assertIs(client, objects_base.NovaObject.indirection_api)
        nova_s = self.useFixture(fixtures.MockPatchObject(
            manager.ComputeManager, 'resize_instance',
            side_effect=messaging.MessagingTimeout)).mock

        class Manager(cold_migration_retry.MovesPatiently, manager.ComputeManager):
            pass

        moves = object.__new__(Manager)
        self.assertRaises(messaging.MessagingTimeout, moves.resize_instance, *[None] * 7)
        self.assertEqual(1, nova_s.call_count)

    def test_confirmation_retry(self):
        self.switch_off('confirmation_retry')
        nova_s = self.useFixture(fixtures.MockPatchObject(
            manager.ComputeManager, '_confirm_resize',
            side_effect=messaging.MessagingTimeout)).mock

        class Manager(confirmation_retry.ConfirmsPatiently, manager.ComputeManager):
            pass

        confirms = object.__new__(Manager)
        self.assertRaises(messaging.MessagingTimeout, confirms._confirm_resize, None, None)
        self.assertEqual(1, nova_s.call_count)
        stats = {}
        confirmation_retry.mark(stats)
        self.assertEqual({}, stats)
