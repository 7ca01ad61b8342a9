"""Speed, as ratios: one training step in each form, and generation with and without a cache."""
