"""Hosts with a real libvirt and QEMU, side by side on one machine."""
