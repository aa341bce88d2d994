"""The name of the service, and its microversions."""

SERVICE = 'kronos'
"""Service type in keystone's catalogue and in the microversion header."""

VERSIONS = ('1.0',)
"""Microversions, the newest last; the documentation lists what each changed."""
