"""Checkpoints as bytes and files: encoding, snapshot, manifest, store; `files` does the I/O."""
