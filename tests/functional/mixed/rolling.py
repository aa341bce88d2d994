"""A cloud that gets Kronos, or loses it, service by service, while servers are in the middle of
moves."""

from tests.functional.mixed import base
from tests.functional.mixed import fakes_drivers

HOSTS = {base.SOURCE: 'host1', base.DESTINATION: 'host2'}
# The order of doc/source/install.rst.
INSTALLING = (base.SOURCE, base.DESTINATION, base.CONDUCTOR)
LEAVING = (base.CONDUCTOR, base.SOURCE, base.DESTINATION)


class RollingCloud(base.MixedCloud):
    def start_service(self, name, host=None, **kwargs):
        service = super().start_service(name, host, **kwargs)
        if name == base.CONDUCTOR:
            self.conductor = service
        return service

    def restart(self, role, has_kronos):
        """Restart a service with the driver line in its nova.conf, or without it."""
        self.kronos = self.kronos | {role} if has_kronos else self.kronos - {role}
        if role == base.CONDUCTOR:
            self.conductor.stop()
            self.start_service(base.CONDUCTOR)
            return
        host = HOSTS[role]
        self.computes[host] = self.restart_compute_service(self.computes[host])

    def roll(self, order, has_kronos):
        """Restart all services in this order, each in the middle of moves."""
        for role in order:
            self.cold_migrations_outlast(role, has_kronos)
            for status in (None, 'failed'):
                if role != base.SOURCE:     # its operations end with it
                    self.a_live_migration_outlasts(role, has_kronos, status)
            self.a_server_moves()
        self.assertEqual({}, self.held_by_anybody())

    def cold_migrations_outlast(self, role, has_kronos):
        confirmed, reverted = self.boot_server(), None
        self._migrate_server(confirmed)
        reverted = self.boot_beside(confirmed)
        self._migrate_server(reverted)

        self.restart(role, has_kronos)

        self._confirm_resize(confirmed)
        self._revert_resize(reverted)
        self.assert_holds(confirmed['id'], self.kind.held('host2', base.SMALL_DISK))
        self.assert_holds(reverted['id'], self.kind.held('host1', base.SMALL_DISK))
        for server in (confirmed, reverted):
            self._delete_server(server)

    def boot_beside(self, other):
        """As boot_server(), where another server holds something."""
        before, self.leaked = self.leaked, frozenset(self.held_by_anybody())
        server = self.boot_server()
        self.leaked = before
        return server

    def a_live_migration_outlasts(self, role, has_kronos, status):
        """One that ends with ``status`` of its record, None if it completes."""
        # Back to where it was before, to be in the middle of the move when it changes.
        self.restart(role, not has_kronos)
        server = self.boot_server()
        self.hold(server)

        self.restart(role, has_kronos)

        fakes_drivers.COURSE.let_go(status)
        self._wait_for_migration_status(server, [status or 'completed'])
        host = 'host1' if status else 'host2'
        self.server_on(server, host)
        self.assert_holds_alone(server, host)
        self._delete_server(server)
        fakes_drivers.COURSE.reset(fakes_drivers.RUN)

    def a_server_moves(self):
        server = self.boot_server()
        self.live_migration(server)
        self.assert_holds_alone(server, 'host2')
        self._delete_server(server)
