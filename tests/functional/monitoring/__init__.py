"""Metrics and dashboards, on a real Prometheus."""
