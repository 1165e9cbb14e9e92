"""Measurements of quality, speed and memory; each module is run with ``python -m benchmarks.NAME``."""
