"""The use cases, over the ports only."""
