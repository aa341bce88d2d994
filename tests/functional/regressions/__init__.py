"""Bugs of Nova's that Kronos closes, by their number: each test fails on stock Nova, and passes
with Kronos in the services."""
