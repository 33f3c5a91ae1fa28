"""Control terms: each file is one term, and registers it by name."""
