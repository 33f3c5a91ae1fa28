"""Derivation of the equations of motion by Lagrange's method, independent of Pinocchio."""
