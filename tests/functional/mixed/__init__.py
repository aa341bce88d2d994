"""Clouds in which Kronos is in some of Nova's services and not in others."""
