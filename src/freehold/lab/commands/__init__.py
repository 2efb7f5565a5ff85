"""The commands `demo`, `simulate` and `bench`; the table of commands in `cli` names their paths."""
