"""What several test modules need: waiting for a state, asking the database, running parts."""
