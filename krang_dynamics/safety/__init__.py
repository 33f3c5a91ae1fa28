"""Between the terms and the motors: modes, limits, stop policies, output limiter. Time is passed in."""
