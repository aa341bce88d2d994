"""The service of a host that will never come back is deleted after its servers were evacuated."""

from tests.functional.regressions import base


class EvacuatedHostTest(base.RegressionTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_server()
        self.service = self.lose_source()
        self._evacuate_server(self.server, expected_host='host2')
        self.assert_holds_alone(self.server, 'host1', 'host2')

    def assert_nothing_is_left(self):
        self.api.api_delete(f'/os-services/{self.service}')
        self.assert_holds_alone(self.server, 'host2')
        self.assertEqual({'host2'}, {each['name'] for each in self._get_all_providers()})

    def test_nothing_is_left_of_the_host(self):
        self.assert_nothing_is_left()

    def test_nor_after_the_reconciler(self):
        self.reconcile()
        self.assert_holds_alone(self.server, 'host2')
        self.assert_nothing_is_left()
