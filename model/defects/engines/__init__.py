"""The second catalogue: decisions of engines that run in the world, with the public reports of what went wrong in them.

Each entry is a scheme of a few lines, written from what a report says; beside it stand the repaired scheme, which holds
in the same scope, and the shortest run that breaks the first, kept as ``traces/ID.trace``. What is between the report
and a running engine is not modelled, and nothing here is a statement about the code of an engine as it is today.
"""
