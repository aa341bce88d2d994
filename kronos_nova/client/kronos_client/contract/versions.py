"""The name of the service and the microversions of its API."""

SERVICE = 'kronos'
"""Service type of Kronos in keystone's catalogue and in the microversion header."""

VERSIONS = ('1.0',)
"""Microversions of the API, the newest last. The documentation lists the changes in each
microversion."""
