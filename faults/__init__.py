"""The fault matrix of the bus: what breaks on purpose, and the ledger that must balance."""
