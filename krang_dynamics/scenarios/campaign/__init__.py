"""Campaigns: many disturbed runs of controller, guard and plant in lock step, judged by a monitor."""
