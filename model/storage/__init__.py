"""The store of checkpoints, explored over a file system that may forget what was not flushed."""
