"""The defect catalogue: the protocols at their documents' word where that goes wrong, each with a run that shows it.

A defect is a module here. Its docstring is its page in the catalogue, its `DEFECT` the smallest change to the sound
code, with a witness: a run that breaks the named invariant with the change, and holds without it. Only the command
line, tests and notebooks import this package.
"""
