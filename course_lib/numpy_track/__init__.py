"""Track one: a GPT on NumPy alone, with an autograd of its own. Every file has a twin in ``course_lib.torch_track``.

It imports only ``common``, never torch or the other track.
"""

from ..common.config import FirstGPTConfig, GPTConfig, TransformerConfig
from ..common.initializer import Initializer
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
    repeat_interleave,
    rms_norm,
    rotary,
    silu,
    softmax,
    split_heads,
    window_mask,
)
from .models import GPT, Bigram, FirstGPT
from .modules import MLP, Dropout, Embedding, LayerNorm, Linear, Module, SelfAttention, Sequential, SimpleAttention
from .muon import Muon
from .optim import SGD, AdamW, clip_grad_norm_
from .tensor import Parameter, Tensor, concatenate, from_numpy, no_grad, where
from .today import GroupedQueryAttention, RMSNorm, SwiGLU

__all__ = [
    "Initializer",
    "TransformerConfig",
    "GPTConfig",
    "FirstGPTConfig",
    "GPT",
    "MLP",
    "SGD",
    "AdamW",
    "Bigram",
    "Dropout",
    "Embedding",
    "FirstGPT",
    "GroupedQueryAttention",
    "KeyValueCache",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "Muon",
    "Parameter",
    "RMSNorm",
    "SelfAttention",
    "Sequential",
    "SimpleAttention",
    "SwiGLU",
    "TeacherForcing",
    "Tensor",
    "Transformer",
    "attention",
    "causal_mask",
    "clip_grad_norm_",
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
    "repeat_interleave",
    "rms_norm",
    "rotary",
    "silu",
    "softmax",
    "split_heads",
    "where",
    "window_mask",
]
