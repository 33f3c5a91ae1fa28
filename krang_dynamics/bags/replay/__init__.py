"""Replay: a recording through the controller, offline."""
