"""A page that stays open: tokens end, keystone is away, and kronos-api restarts."""

import datetime
import time

import webob.exc
from keystonemiddleware import auth_token
from selenium.webdriver.common.keys import Keys

from kronos_nova import clock
from kronos_nova.api import application
from kronos_nova.db import switches
from tests.functional.api import pages
from tests.unit.api import base

MOST_REFUSED = 4
"""Requests in progress with a token when it ended: three of a look, and that for events."""


class TokenTest(pages.PageTestCase):
    content = {'hosts': 120, 'servers': 1000}

    def know_anew(self, token, roles):
        self.know(token, roles, clock.utcnow() + datetime.timedelta(days=1))

    def refused(self):
        """Return how many requests were refused with 401 since this was last asked."""
        return sum('401 (Unauthorized)' in each['message']
                   for each in self.driver.get_log('browser'))

    def come_back(self, token):
        self.click('#by-token')
        self.find('[name=token]').send_keys(token)
        self.click('#login [type=submit]')

    def test_one_that_ends_is_asked_for_again_and_the_page_does_not_change(self):
        self.open()
        self.unfold()
        self.find('[data-move="7"] [type=checkbox]').click()
        self.find('#filter').send_keys('compute-001')
        self.click('#pause')
        self.wait('dialog [name=reason]').send_keys('half a sen')
        self.forget(base.OPERATOR)
        self.look()
        self.wait('#login')
        self.assertIn('no longer valid', self.text('#login-title ~ [role=alert]'))
        self.assertIn('Approve 49 of 50 moves', self.text('#approve'))
        self.assertIsNone(self.driver.execute_script(
            'return sessionStorage.getItem("kronos-token")'))
        self.assertLessEqual(self.refused(), MOST_REFUSED)
        self.browser.requests()
        time.sleep(2)
        self.assertEqual([], self.browser.requests())
        self.assertEqual([], self.browser.violations())

        self.know_anew('another', base.ROLES[base.OPERATOR])
        self.come_back('another')
        self.wait_for(lambda: not self.count('#login'))
        self.confirm(reason='tence')
        self.wait_for(lambda: 'half a sentence' in self.text('#stopped'))
        self.assertIn('Approve 49 of 50 moves', self.text('#approve'))
        self.assertEqual('compute-001', self.find('#filter').get_attribute('value'))
        self.journal.reject_plan(self.plan_uuid, 'another', clock.utcnow())
        self.wait_for(lambda: 'No plan waits or runs' in self.text('#plan'))
        self.assertEqual(0, self.refused())

    def test_what_is_asked_for_with_one_that_ended_is_not_done_and_that_is_said(self):
        self.open()
        self.click('#pause')
        self.wait('dialog #confirm')
        self.forget(base.OPERATOR)
        self.find('dialog #confirm').click()
        self.wait_for(lambda: 'was not carried out' in self.text('#login-title ~ [role=alert]'))
        self.assertEqual([], switches.SwitchBoard(self.database).history())

    def test_another_user_gets_a_page_of_their_own(self):
        self.open()
        self.assertEqual(0, self.count('#level'))
        self.click('#pause')
        self.wait('dialog #confirm')
        self.forget(base.OPERATOR)
        self.look()
        self.wait('#login')
        self.come_back('nobody')
        self.wait_for(lambda: 'token' in self.text('#login-title ~ [role=alert]'))
        self.come_back(base.ADMIN)
        self.wait('#level')
        self.assertEqual(0, self.count('dialog'))

    def test_a_user_who_logs_out_leaves_nothing_on_the_page(self):
        self.open()
        self.forget(base.OPERATOR)
        self.look()
        self.wait('#login')
        self.driver.find_element('xpath', '//dialog//button[text()="Log out"]').click()
        self.wait_for(lambda: not self.count('dialog'))
        self.assertEqual(1, self.count('#login'))
        self.assertNotIn('racks', self.text())

    def test_that_it_will_end_is_said_before(self):
        self.know('short', base.ROLES[base.READER],
                  clock.utcnow() + datetime.timedelta(minutes=4))
        self.open('short')
        self.wait_for(lambda: 'expires in five minutes' in self.text('#notice'))
        self.assertEqual(0, self.count('#login'))

    def test_one_that_has_ended_leads_to_the_login(self):
        self.open()
        self.driver.execute_script('sessionStorage.setItem("kronos-token", "expired")')
        self.driver.refresh()
        self.wait('#login')
        self.assertIn('no longer valid', self.text('[role=alert]'))
        self.assertIsNone(self.driver.execute_script(
            'return sessionStorage.getItem("kronos-token")'))

    def test_one_is_in_no_address_and_in_no_lasting_store(self):
        self.open('operator')
        self.assertEqual([], [each for each in self.browser.requests() if 'operator' in each])
        self.assertEqual(['', ''], self.driver.execute_script(
            'return [document.cookie, Object.values(localStorage).join("")]'))


class AwayTest(pages.PageTestCase):
    content = {'hosts': 12, 'servers': 100}

    def lose_keystone(self):
        """As keystonemiddleware says that it cannot ask."""
        def fetch_token(_self, _token, **_options):
            raise webob.exc.HTTPServiceUnavailable

        self.patch(auth_token.AuthProtocol, 'fetch_token', fetch_token)

    def fresh(self):
        return self.text('#fresh')

    def test_a_keystone_that_does_not_answer_ends_no_session(self):
        self.open()
        self.wait_for(lambda: self.fresh().startswith('as of'))
        known = auth_token.AuthProtocol.fetch_token
        self.lose_keystone()
        self.look()
        self.wait_for(lambda: 'keystone does not answer' in self.fresh())
        self.assertIn('What is shown is as of', self.fresh())
        self.assertIn('racks', self.text('#chosen'))
        self.driver.refresh()
        self.wait_for(lambda: 'keystone does not answer' in self.text('#content'))
        auth_token.AuthProtocol.fetch_token = known
        self.wait('#aggregate')
        self.wait_for(lambda: self.fresh().startswith('as of'))

    def test_a_kronos_api_that_starts_again_is_found_again(self):
        self.open()
        self.wait_for(lambda: self.fresh().startswith('as of'))
        self.end_service()
        self.look()
        self.wait_for(lambda: 'kronos-api does not answer' in self.fresh())
        self.assertIn('racks', self.text('#chosen'))
        self.browser.requests()
        self.conf.set_override('port', int(self.url.rpartition(':')[2]), 'kronos_api')
        self.serve(application.make(self.conf, self.services()))
        self.wait_for(lambda: self.fresh().startswith('as of'))
        self.wait_for(lambda: f'{self.url}/v1/events' in self.browser.requests())
        self.journal.reject_plan(self.plan_uuid, 'another', clock.utcnow())
        self.wait_for(lambda: 'No plan waits or runs' in self.text('#plan'))


class TokenAloneTest(pages.PageTestCase):
    kronos = 'aggregates = racks, gpu, db\n[kronos_api]\npassword_login = false'
    content = {'hosts': 12, 'servers': 100}

    def test_where_passwords_are_not_taken_none_is_asked_for(self):
        self.driver.get(f'{self.url}/ui/')
        self.wait('#login [name=token]')
        self.assertEqual(0, self.count('[name=password], #by-password'))
        self.assertEqual([], self.browser.violations())
        self.find('[name=token]').send_keys(base.READER, Keys.ENTER)
        self.wait('#aggregates')
