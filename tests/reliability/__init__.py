"""What an index survives: kills, signals, company and bad files. Minutes long, so `make test-reliability` runs it."""
