"""What an operator asks for: the policies file, validated."""

from kronos_nova.policies.buffers import Buffer
from kronos_nova.policies.loader import load
from kronos_nova.policies.loader import parse
from kronos_nova.policies.models import MigrationQueries
from kronos_nova.policies.models import Policy
from kronos_nova.policies.models import PolicySet
from kronos_nova.policies.rules import OperatorRule

__all__ = ('Buffer', 'MigrationQueries', 'OperatorRule', 'Policy', 'PolicySet', 'load', 'parse')
