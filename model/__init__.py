"""The model of what is right: the dataflow graph, the journal of a run, and the invariants that judge it.

`history` and `invariants` are the specification and know nothing of the code they judge; `topology` is the
graph both sides share; `operators` is what the tasks of a run compute; `trace` is a journal as text.
"""
