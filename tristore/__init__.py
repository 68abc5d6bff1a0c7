"""Three stores on one event bus."""

__version__ = "0.1.0"
