"""The policies file, in which an operator configures load policies, rules and buffers.

The package has the models of the file, its validation and its loading. The package imports a
module when one of the module's names is first used. Otherwise a command that only reads maintenance
windows would spend a third of its time on importing pydantic and the models.
"""

import importlib
import typing

if typing.TYPE_CHECKING:
    from kronos_nova.policies.buffers import Buffer
    from kronos_nova.policies.loader import load
    from kronos_nova.policies.loader import load_for_request
    from kronos_nova.policies.loader import parse
    from kronos_nova.policies.models import MigrationQueries
    from kronos_nova.policies.models import Policy
    from kronos_nova.policies.models import PolicySet
    from kronos_nova.policies.rules import OperatorRule

__all__ = ('Buffer', 'MigrationQueries', 'OperatorRule', 'Policy', 'PolicySet', 'load',
           'load_for_request', 'parse')

HOMES = {'Buffer': 'buffers', 'MigrationQueries': 'models', 'OperatorRule': 'rules', 'Policy':
         'models', 'PolicySet': 'models', 'load': 'loader',
         'load_for_request': 'loader', 'parse': 'loader'}
"""{name that this package exports: module that defines it}."""


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(importlib.import_module(f'{__name__}.{HOMES[name]}'), name)
