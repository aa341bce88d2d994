"""The slots of flavors in evaluations. The slots of a flavor are the number of further servers of
this flavor that fit."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from oslo_log import log as logging

from kronos_nova import exception
from kronos_nova.inventory.base import InventorySource
from kronos_nova.objects.plan import SlotReport
from kronos_nova.objects.shape import Shape
from kronos_nova.room import shapes
from kronos_nova.room.failover import FITS
from kronos_nova.room.losses import HOST
from kronos_nova.room.losses import JudgedLoss
from kronos_nova.room.slots import SlotCounter

LOG = logging.getLogger(__name__)


def shapes_of(names: Sequence[str], inventory: InventorySource) -> list[Shape]:
    """Return the shapes (resources of one server) that ``[kronos] slot_flavors`` names. A name that
    is neither a flavor nor a valid shape is left out and logged."""
    try:
        known = {each.name: each for each in inventory.read_flavors()} if any(
            not shapes.TEXT.fullmatch(name) for name in names) else {}
    except exception.InventoryError as error:
        LOG.warning('Slots (how many more servers of [kronos] slot_flavors fit) are not counted in '
                    'this evaluation, because the flavors cannot be read: %s', error)
        return []
    missing = [name for name in names if name not in known and not shapes.TEXT.fullmatch(name)]
    if missing:
        LOG.warning('[kronos] slot_flavors names flavors that Nova does not have: %s. Slots of '
                    'these flavors are not counted; correct the option.', ', '.join(missing))
    return [known.get(name) or shapes.parse(name) for name in names if name not in missing]


def slot_reports(counter: SlotCounter, judged: Iterable[JudgedLoss],
                 left: Callable[[], float]) -> tuple[SlotReport, ...]:
    """Return a SlotReport for each flavor, with two numbers of slots (how many more servers fit).
    The first is the number now. The second is the number after the loss of one host of the
    aggregate: the host whose loss leaves the fewest slots. The second number is None, except if the
    servers of every host are known to be able to restart elsewhere.

    :param judged: the checked losses of the aggregate's hosts
    :param left: returns the seconds that are left; if none are left, slots after losses are not
        counted
    """
    hosts = [each.verdict for each in judged if each.loss.level == HOST]
    verdicts = [each for each in hosts if each is not None and each.verdict == FITS]
    is_known = len(verdicts) == len(hosts) > 0
    found = []
    for number, shape in enumerate(counter.shapes):
        least: int | None = None
        for verdict in verdicts if is_known else ():
            if left() <= 0:
                least = None
                break
            after = counter.without(number, verdict)
            least = after if least is None else min(least, after)
        found.append(SlotReport(flavor=shape.name, now=counter.slots(number).total,
                                after_loss=least))
    return tuple(found)
