"""Model parameters from recordings."""
