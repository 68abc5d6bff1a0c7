"""The operator's questions: find, replay, account for, look after."""
