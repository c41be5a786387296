"""A trace for the eye and for other tools."""
