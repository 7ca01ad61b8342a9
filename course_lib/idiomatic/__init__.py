"""The same models as PyTorch users write them: nn.Module, its layers and state_dict, data-parallel training.

It imports the torch track, training, text and common; exercises and experiments may import it.
"""
