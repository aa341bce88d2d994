"""Which aggregates Kronos looks after."""

from kronos_nova import exception
from kronos_nova.objects import snapshot


def scopes(conf):
    """Names of what ``[kronos]`` puts in scope, the pool of unassigned hosts among them."""
    pool = [snapshot.UNASSIGNED] if conf.kronos.include_unassigned_hosts else []
    return [*dict.fromkeys(conf.kronos.aggregates), *pool]


def refuse_empty_scope(conf):
    """:raises ConfigurationError: there is nothing to plan for"""
    if not scopes(conf):
        raise exception.ConfigurationError(
            what='[kronos] aggregates', problem='no aggregate is in scope',
            remedy='Name the aggregates to balance, or set include_unassigned_hosts.')
