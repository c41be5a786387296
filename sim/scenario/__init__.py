"""TOML to settings."""
