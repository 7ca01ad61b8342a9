"""Programs to run: named recipes, the loss ladder, the reference runs, the bench, the shipped checkpoints.

They may import every other folder; only notebooks and tests import them.
"""
