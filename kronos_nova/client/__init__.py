"""Calls operations of the contract over HTTP."""
