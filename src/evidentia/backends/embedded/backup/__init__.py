"""Hot backups and their restore."""
