"""Several processes on one object store, against servers on loopback: `make test-scale`."""
