"""References of the terms: joint trajectories and set-points."""
