"""Which schema an event must fit: versions, compatibility, safety."""
