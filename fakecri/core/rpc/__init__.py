"""One module per family of RPCs; each registers its handlers in ``registry.HANDLERS``."""
