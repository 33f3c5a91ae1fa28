"""The command `krang`: one file per command."""
