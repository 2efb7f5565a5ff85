"""The rules, in pure Python: no I/O, no clock, no chance. Stores persist what is decided here."""
