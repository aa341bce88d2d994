"""The port to the store of claims. Drivers are entry points of ``kronos_nova.claim_stores``."""

from typing import Protocol

from stevedore import driver

from kronos_nova.objects.claim import Claim

NAMESPACE = 'kronos_nova.claim_stores'


class ClaimStore(Protocol):
    """Keeps the claims of one compute host. Not thread safe: the caller holds its own lock.

    A driver is called with ``conf`` (the configuration), ``host`` (the compute host's name) and
    ``call`` (``call(method, **kwargs)`` asks the conductor, returns its answer and raises
    ClaimError; None where there is none). Every method raises ClaimError when it cannot do what it
    is asked; what was kept before is then unchanged.
    """

    def open(self) -> bool:
        """Open the store; harmless when repeated.

        :returns: whether the claims were kept without a gap since they were last written. False
            means that they may be incomplete: the store is new, was upgraded or had to be rebuilt
        :raises DatabaseVersionError: it is newer than this code
        """

    def load(self) -> list[Claim]:
        """Return all claims of this host, in the order of their ids."""

    def write(self, put: list[Claim], drop: list[tuple]) -> dict[tuple, int]:
        """Insert or overwrite the claims ``put`` by their keys and remove those with the keys
        ``drop``, in one transaction. Keys that are not there are no error.

        :returns: {key: id} of ``put``
        """

    def close(self) -> None:
        """Give back what was opened; :meth:`open` may follow."""


def load_store(name, conf, host, call=None):
    """Return the driver called ``name``, as configured in ``[kronos_claims] store``."""
    return driver.DriverManager(NAMESPACE, name, invoke_on_load=True, invoke_kwds={
        'conf': conf, 'host': host, 'call': call}).driver
