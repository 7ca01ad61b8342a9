"""The library of the course *GPT, twice*: one GPT on a NumPy autograd, the same GPT in raw PyTorch."""

__version__ = "0.1.0"
