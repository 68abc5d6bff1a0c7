"""The bus: one envelope, one ordered log, one way for an event to reach it."""
