"""The commands of operators. One class serves the command in both ``kronos-manage`` and ``openstack
kronos``."""
