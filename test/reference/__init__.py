"""Second derivation of the equations of motion, from energies alone: ground truth of the tests."""
