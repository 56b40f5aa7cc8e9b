"""The tests, by what they look at; shared rigs and fakes are imported as `tests.NAME`.

- simkit/, scenarios/, reference_runtime/, conformance/: one folder for each package;
- test_tidy.py: house rules that no linter knows; test_packaging.py: what is shipped; test_examples.py: the documents.

Marks: `slow` (over a quarter of a second), `repository` (reads the repository's own files, so it stays away when the
wheel is tested from another folder), `network` (installs a released harness on first use).
"""
