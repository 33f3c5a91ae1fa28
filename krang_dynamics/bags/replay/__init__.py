"""A recording through the controller again, offline."""
