"""Settings from flags, the environment and files."""

from rse_cli.config.keys import DEFAULT_MODELS, KEYS, PROJECT_FILE, Key
from rse_cli.config.settings import Settings, load_settings
from rse_cli.config.stores import choose_store, read_place

__all__ = ["DEFAULT_MODELS", "KEYS", "PROJECT_FILE", "Key", "Settings", "choose_store", "load_settings", "read_place"]
