"""The fault matrix of the bus: what is broken on purpose, and the ledger that must still balance."""
