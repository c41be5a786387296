"""The formal model of the gate, as a table of situations and effects for each checkpoint protocol."""
