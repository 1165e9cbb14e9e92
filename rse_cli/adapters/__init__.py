"""What the ports stand for: files, models and the store."""
