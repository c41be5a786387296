"""The parts that are offered whole: the tables by name, the standard scopes, the conformance suite."""
