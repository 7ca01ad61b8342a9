"""Pictures in steps: several drawings of one thing, one at a time, with the words of each."""
