"""Track one: a GPT on NumPy alone, with an autograd of its own.

Every file here has a twin of the same name in ``course_lib.torch_track``.
"""

from .cache import KeyValueCache
from .encoder_decoder import MultiHeadAttention, TeacherForcing, Transformer
from .functional import (
    attention,
    causal_mask,
    cross_entropy,
    dropout,
    embedding,
    gelu,
    layer_norm,
    linear,
    linear_heads,
    log_softmax,
    merge_heads,
    relu,
    softmax,
    split_heads,
)
from .models import GPT, Bigram, FirstGPT
from .modules import MLP, Dropout, Embedding, LayerNorm, Linear, Module, SelfAttention, Sequential, SimpleAttention
from .muon import Muon
from .optim import SGD, AdamW, clip_grad_norm
from .tensor import Parameter, Tensor, concatenate, from_numpy, no_grad

__all__ = [
    "GPT",
    "MLP",
    "SGD",
    "AdamW",
    "Bigram",
    "Dropout",
    "Embedding",
    "FirstGPT",
    "KeyValueCache",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "Muon",
    "Parameter",
    "SelfAttention",
    "Sequential",
    "SimpleAttention",
    "TeacherForcing",
    "Tensor",
    "Transformer",
    "attention",
    "causal_mask",
    "clip_grad_norm",
    "concatenate",
    "cross_entropy",
    "dropout",
    "embedding",
    "from_numpy",
    "gelu",
    "layer_norm",
    "linear",
    "linear_heads",
    "log_softmax",
    "merge_heads",
    "no_grad",
    "relu",
    "softmax",
    "split_heads",
]
