"""The fault matrix of the platform: what breaks on purpose, and the ledger that must balance."""
