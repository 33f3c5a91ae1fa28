"""What the terms follow: joint trajectories and set-points."""
