"""The equations of motion by Lagrange's method, from frames to A, C, Q; knows nothing of Pinocchio."""
