"""The entries of the catalogue about MergeMap and JoinBarrier."""
