"""Recordings of many robots: figures of every bag, trends, change points."""
