"""The specification: what a correct run is, said without `impl`, which it judges."""
