"""The name of the service, and its microversions."""

SERVICE = 'kronos'
"""Service type in keystone's catalogue and in the microversion header."""

VERSIONS = ('1.0',)
"""Microversions of the API, the newest last. The documentation lists the changes of each."""
