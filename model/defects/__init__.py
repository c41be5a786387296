"""The defect catalogue: the protocols at their documents' word where that goes wrong, each with a run that shows it.

A defect is a module here. Its docstring is its page in the catalogue; beside it stands the smallest change to the sound
code, and what shows that it breaks. Only the command line, tests and notebooks import this package.
"""
