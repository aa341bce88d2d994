"""Nouns and verbs that agree with a number, as commands format them."""

from kronos_client.plural import agreeing
from kronos_client.plural import count

__all__ = ('agreeing', 'count')
