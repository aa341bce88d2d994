"""The commands, each one class for both ``kronos-manage`` and ``openstack kronos``."""
