"""The interface of claim stores. A claim is an amount of resources that a compute host reserves for
an instance.

Each store has a driver, which is an entry point of ``kronos_nova.claim_stores``.
"""

from collections.abc import Sequence
from typing import Any
from typing import Protocol

from stevedore import driver

from kronos_nova.claims.node_claims import Key
from kronos_nova.objects.claim import Claim

NAMESPACE = 'kronos_nova.claim_stores'


class ClaimStore(Protocol):
    """A store of the claims of one compute host. The store is not thread safe: the caller has to
    hold a lock.

    A driver is the class of a store. Its constructor gets ``conf`` (the configuration), ``host``
    (the compute host's name) and ``call``. ``call(method, **kwargs)`` calls the conductor and
    returns its answer, or raises ClaimError. ``call`` is None if there is no conductor.

    If a method of the store fails, the method raises ClaimError, and no claim is changed.
    """

    def open(self) -> bool:
        """Open the store. A repeated call changes nothing.

        :returns: True if the stored claims are complete; False if claims may be missing, because
            the store is new, was upgraded or had to be rebuilt
        :raises DatabaseVersionError: the store is newer than this code
        """

    def load(self) -> list[Claim]:
        """Return all claims of this host, in the order of their ids."""

    def write(self, put: Sequence[Claim], drop: Sequence[Key]) -> dict[Key, int]:
        """Insert or overwrite the claims ``put``, and remove the claims whose keys are in ``drop``.
        Both are done in one transaction. A key is (node, uuid of the instance, ``resize_target``).
        A key in ``drop`` that has no claim is no error.

        :returns: {key of a claim: id of the claim}, for the claims ``put``
        """

    def close(self) -> None:
        """Close the store. It may be opened again."""


def load_store(name: str, conf: Any, host: str, call: Any = None) -> ClaimStore:
    """Return the claim store whose driver is called ``name``.

    :param name: value of the option ``[kronos_claims] store``
    :param call: function that calls the conductor, or None; see :class:`ClaimStore`
    """
    store: Any = driver.DriverManager(NAMESPACE, name, invoke_on_load=True, invoke_kwds={
        'conf': conf, 'host': host, 'call': call}).driver
    return store
