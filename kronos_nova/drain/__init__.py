"""Hosts that operators empty: what is wanted, what is planned, and how far it is."""
