"""The parts of `simkit.sqlite`: what SQLite sees of an open file."""
