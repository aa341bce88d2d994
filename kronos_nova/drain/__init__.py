"""Drains of hosts: the requests of operators, the plans that empty the hosts, and the progress."""
