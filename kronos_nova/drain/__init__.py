"""Drains of hosts: requests of operators, plans and progress."""
