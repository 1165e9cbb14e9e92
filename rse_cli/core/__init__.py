"""The engine: pure functions over numpy arrays and plain data."""
