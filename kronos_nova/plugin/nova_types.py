"""Names of Nova's types, for annotations.

Nova does not declare its types, so a type checker treats all objects of Nova as ``Any``. Most of
these classes cannot be named at the top of a module, because :mod:`nova.objects` has them only
after ``nova.objects.register_all()``.
"""

import functools
from collections.abc import Callable
from typing import Any
from typing import TypeAlias
from typing import TypeVar

Method = TypeVar('Method', bound=Callable[..., Any])

# Objects of nova.objects
BlockDeviceMappingList: TypeAlias = Any
CellMapping: TypeAlias = Any
ComputeNode: TypeAlias = Any
Flavor: TypeAlias = Any
Instance: TypeAlias = Any
InstanceFault: TypeAlias = Any
InstanceNUMATopology: TypeAlias = Any
InstancePCIRequest: TypeAlias = Any
LiveMigrateData: TypeAlias = Any
Migration: TypeAlias = Any
NUMATopology: TypeAlias = Any
PciDevice: TypeAlias = Any
RequestSpec: TypeAlias = Any
Selection: TypeAlias = Any
Service: TypeAlias = Any

# Other classes of Nova
ComputeDriver: TypeAlias = Any
HostState: TypeAlias = Any
LiveMigrationTask: TypeAlias = Any
MigrationTask: TypeAlias = Any
PciDevTracker: TypeAlias = Any
ProviderTree: TypeAlias = Any
RequestContext: TypeAlias = Any
ResourceRequest: TypeAlias = Any
SchedulerQueryClient: TypeAlias = Any
SchedulerReportClient: TypeAlias = Any
ServiceGroupApi: TypeAlias = Any
WeighedHost: TypeAlias = Any

# Parts of queries of Nova's databases, by SQLAlchemy. The columns have no types.
Column: TypeAlias = Any
Query: TypeAlias = Any
Row: TypeAlias = Any
Session: TypeAlias = Any

Mixin: Any = object
"""Base class of the mixins for classes of Nova. A type checker assumes that a mixin has all
attributes of the class of Nova with which it is combined."""


def wraps(method: Any) -> Callable[[Method], Method]:
    """Return ``functools.wraps(method)`` as the decorator of a method. With the declared type of
    :func:`functools.wraps`, a type checker would take the method for a plain function.

    :param method: the method of Nova that is overridden
    """
    decorator: Any = functools.wraps(method)
    return decorator
