"""An independent derivation of the equations of motion from energies: ground truth of the tests."""
