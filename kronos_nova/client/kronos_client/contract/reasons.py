"""Reasons for which servers are not moved: {word for the reason in reports: its explanation}."""

WHY_SERVERS_STAY = {
    'not_active': 'neither ACTIVE nor PAUSED, so live migration cannot move it',
    'busy': 'Nova is doing something else with it',
    'locked': 'locked by its owner or an administrator',
    'excluded': 'excluded from moves by metadata, flavor or project',
    'quarantine': 'its last migration failed for good; it is left alone until the quarantine ends '
                  'or an operator releases it',
    'cooldown': 'moved not long ago; left alone until its cooldown ends',
    'no_profile': 'its load is not known',
    'group': 'all hosts that would help are ruled out, mainly by a rule of its server group',
    'capacity': 'all hosts that would help are ruled out, mainly because they are full, as '
                'placement counts',
    'zone': 'all hosts that would help are ruled out, mainly because they are in another '
            'availability zone or cell',
    'isolation': 'all hosts that would help are ruled out, mainly because they do not admit its '
                 'project or flavor',
    'reserve': 'all hosts that would help are ruled out, mainly because they have only room that '
               'has to stay free',
    'failover': 'after its move a host or failure domain could not be lost any more',
    'returning': 'all hosts that would help are ruled out, mainly because it left them not long '
                 'ago',
    'rule': 'a rule of the policies file, or one that was installed here, keeps it',
    'refused': 'Nova refuses the hosts that would help, or did so not long ago',
    'endless': 'it writes memory faster than can be copied, so its live migration would not end',
    'cap': 'the limit on moves of the server, of its project or for one load is reached',
    'unrepaired': 'a rule or server group that it violates could not be repaired within the limits '
                  'of the plan',
    'threshold': 'every move that would help makes a policy worse and leaves it above its '
                 'threshold, or a host above its target',
    'late': 'its move would begin only after the plan is too old',
    'no_gain': 'no move of it makes the imbalance smaller, or every imbalance is low enough '
               'without it',
    'budget': 'a move would help, but the plan has as many moves as it may have',
}
