"""The sizes and choices of each model, as small dataclasses that both tracks and the checkpoints share."""

import numbers
from dataclasses import dataclass

from .initial import SCHEMES

WIRINGS = ("pre", "post", "residual", "plain")


def _whole(config, least, *names):
    for name in names:
        value = getattr(config, name)
        if not isinstance(value, numbers.Integral) or value < least:
            raise ValueError(f"{name} must be a whole number, at least {least}, not {value}")


def _heads_and_dropout(config):
    if config.width % config.heads:
        raise ValueError(f"width {config.width} is not divisible by {config.heads} heads")
    if not 0 <= config.dropout <= 1:
        raise ValueError(f"dropout must be between 0 and 1, not {config.dropout}")


def _one_of(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; not {value!r}")


@dataclass(frozen=True)
class FirstGPTConfig:
    """The first GPT of the course: attention without query, key and value, no residual, no LayerNorm."""

    vocabulary_size: int  # V
    context: int = 32  # T, the longest window
    width: int = 64  # C
    layers: int = 2  # L
    causal: bool = False  # may a position look only back?
    output_projection: bool = True  # a matrix after the attention
    initial: str = "scaled"  # see course_lib.initial
    dtype: str = "float32"

    def __post_init__(self):
        _whole(self, 1, "vocabulary_size", "context", "width")
        _whole(self, 0, "layers")
        _one_of("initial", self.initial, SCHEMES)


@dataclass(frozen=True)
class GPTConfig:
    """The GPT of the course. The defaults are the decoder-only Transformer of notebook 08."""

    vocabulary_size: int  # V
    context: int = 8  # T, the longest window
    width: int = 32  # C
    heads: int = 4  # H; the head size is D = C / H
    layers: int = 3  # L
    activation: str = "relu"  # of the MLP: relu, gelu (tanh form), or none for no MLP at all
    wiring: str = "pre"  # pre: x + f(norm(x)); post: norm(x + f(x)); residual: x + f(x); plain: f(x)
    causal: bool = True  # may a position look only back?
    positions: bool = True  # a learned vector for each position
    tied: bool = False  # does the head share the token table?
    residual_scaled: bool = False  # matrices that write into the residual stream start smaller by √(2 L)
    attention_bias: bool = False  # do query, key, value and output add a bias? (GPT-2: yes)
    dropout: float = 0.0
    initial: str = "small"  # see course_lib.initial
    dtype: str = "float32"

    def __post_init__(self):
        _whole(self, 1, "vocabulary_size", "context", "width", "heads")
        _whole(self, 0, "layers")
        _heads_and_dropout(self)
        _one_of("activation", self.activation, ("relu", "gelu", "none"))
        _one_of("wiring", self.wiring, WIRINGS)
        _one_of("initial", self.initial, SCHEMES)


@dataclass(frozen=True)
class TransformerConfig:
    """The encoder–decoder Transformer. The defaults are the base model of Vaswani et al. 2017, table 3."""

    source_size: int  # V of the source, padding included
    target_size: int  # V of the target, padding, begin and end included
    width: int = 512  # C
    heads: int = 8  # H; the head size is D = C / H
    layers: int = 6  # L, of the encoder and again of the decoder
    inner: int = 2048  # numbers between the two matrices of the feed-forward
    dropout: float = 0.1
    maximum: int = 5000  # the longest source and the longest target: rows of the table of positions
    initial: str = "small"  # see course_lib.initial; "uniform" tables, times √C, would drown the positions
    dtype: str = "float32"

    def __post_init__(self):
        _whole(self, 1, "source_size", "target_size", "width", "heads", "inner", "maximum")
        _whole(self, 0, "layers")
        _heads_and_dropout(self)
        _one_of("initial", self.initial, SCHEMES)
