"""Nouns and verbs that agree with a number."""

SINGULAR = {'are': 'is', 'have': 'has', 'were': 'was'}
"""The verbs whose singular is not made by an ``s``: {plural: singular}."""


def count(number: int, noun: str, verb: str = '') -> str:
    """Format a number of things, such as ``1 host`` or ``2 hosts``. The verb is given in the
    plural, and follows the noun: ``1 host has``, ``2 hosts have``."""
    counted = f'{number} {noun}{"" if number == 1 else "s"}'
    return f'{counted} {agreeing(number, verb)}' if verb else counted


def agreeing(number: int, verb: str) -> str:
    """Return a verb, which is given in the plural, in the form that agrees with a number."""
    return SINGULAR.get(verb, f'{verb}s') if number == 1 else verb
