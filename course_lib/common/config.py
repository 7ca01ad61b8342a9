"""The sizes and choices of each model, as small dataclasses that both tracks and the checkpoints share."""

import math
from dataclasses import dataclass

from .checks import check_choice, check_rope_scaling, check_whole
from .initializer import SCHEMES

ACTIVATIONS = ("relu", "gelu")
NORMS = ("pre", "post", None)
NORM_LAYERS = ("layer_norm", "rms_norm")
POSITIONS = (True, False, "rotary")
PRECISIONS = ("float32", "float64")  # in float16 AdamW's ε of 1e-8 would be 0


def _whole(config, least, *names):
    for name in names:
        check_whole(name, getattr(config, name), least)


def _heads_and_dropout(config):
    if getattr(config, "head_dim", None) is None and config.width % config.heads:
        raise ValueError(f"width {config.width} is not divisible by {config.heads} heads")
    if not 0 <= config.dropout <= 1:
        raise ValueError(f"dropout must be between 0 and 1, not {config.dropout}")


@dataclass(frozen=True)
class FirstGPTConfig:
    """Configuration of the course's first GPT: attention without query, key and value; no residual, no LayerNorm."""

    vocab_size: int  # V
    context_length: int = 32  # T, the longest window
    width: int = 64  # C
    layers: int = 2  # L
    causal: bool = False  # does a position attend only to itself and earlier ones?
    output_projection: bool = True  # a matrix after attention
    init: str = "scaled"  # see course_lib.common.initializer
    dtype: str = "float32"

    def __post_init__(self):
        _whole(self, 1, "vocab_size", "context_length", "width")
        _whole(self, 0, "layers")
        check_choice("init", self.init, SCHEMES)
        check_choice("dtype", self.dtype, PRECISIONS)


@dataclass(frozen=True)
class GPTConfig:
    """Configuration of the course's GPT; the defaults give the decoder-only Transformer of notebook 09."""

    vocab_size: int  # V
    context_length: int = 8  # T, the longest window
    width: int = 32  # C
    heads: int = 4  # H; the head size is D = C / H, unless head_dim says otherwise
    layers: int = 3  # L
    activation: str = "relu"  # of the MLP: relu, gelu (tanh form), swiglu (gated), or none for no MLP at all
    norm: str | None = "pre"  # LayerNorm: "pre", x + f(norm(x)); "post", norm(x + f(x)); None: none
    residual: bool = True  # is x added to f(x)?
    causal: bool = True  # does a position attend only to itself and earlier ones?
    positions: bool | str = True  # a learned vector for each position; "rotary": queries and keys turn; False: none
    tied: bool = False  # does the head share the token table?
    residual_scaled: bool = False  # matrices that write into the residual stream start smaller by √(2 L)
    attention_bias: bool = False  # do query, key, value and output add a bias? (GPT-2: yes)
    dropout: float = 0.0
    init: str = "small"  # see course_lib.common.initializer
    dtype: str = "float32"
    # what changed from GPT-2 to today
    norm_layer: str = "layer_norm"  # or "rms_norm"
    norm_eps: float = 1e-5  # ε of every norm
    rope_theta: float = 10000.0  # base of the rotary angles
    rope_scaling: tuple | None = None  # Llama 3's slower turns for a longer context: see rotary_angles
    d_ff: int | None = None  # hidden units of the MLP; None: 4C, with swiglu 8/3 C rounded up to a multiple of 8
    kv_heads: int | None = None  # heads of key and value, each shared by H / kv_heads query heads; None: H
    head_dim: int | None = None  # D; None: C / H
    qk_norm: bool = False  # is each query and key normalised (RMSNorm over D), before it is rotated?
    embedding_std: float | None = None  # standard deviation of the initial token table; None: as ``init`` says
    embedding_norm: bool = False  # is each token's vector divided by the root of its mean square, before all blocks?
    conv_kernel: int | None = None  # K: the MLP reads x + a weighted sum of x at the last K positions
    window: int | None = None  # a position attends to itself and the window - 1 before it; None: to all before it
    bias: bool = True  # do LayerNorm, MLP and head add a bias? (attention: attention_bias)

    def __post_init__(self):
        _whole(self, 1, "vocab_size", "context_length", "width", "heads")
        _whole(self, 0, "layers")
        optional = ("d_ff", "kv_heads", "head_dim", "conv_kernel", "window")
        _whole(self, 1, *(name for name in optional if getattr(self, name) is not None))
        _heads_and_dropout(self)
        check_choice("activation", self.activation, (*ACTIVATIONS, "swiglu", "none"))
        check_choice("norm", self.norm, NORMS)
        check_choice("norm_layer", self.norm_layer, NORM_LAYERS)
        check_choice("positions", self.positions, POSITIONS)
        check_choice("init", self.init, SCHEMES)
        check_choice("dtype", self.dtype, PRECISIONS)
        if self.heads % self.key_value_heads:
            raise ValueError(f"{self.heads} query heads cannot share {self.kv_heads} key and value heads equally")
        if self.rotary and self.head_size % 2:
            raise ValueError(f"rotary positions turn pairs of channels: the head size {self.head_size} must be even")
        if self.window is not None and not self.causal:
            raise ValueError(f"a window of {self.window} looks back only: it needs causal=True")
        if self.conv_kernel is not None and not (self.causal and self.activation != "none"):
            raise ValueError(f"a conv_kernel of {self.conv_kernel} looks back, before an MLP: it needs both")
        if (self.window or math.inf) < (self.conv_kernel or 1):
            raise ValueError(f"a window of {self.window} is shorter than the conv_kernel of {self.conv_kernel}")
        if self.rope_scaling is not None:
            object.__setattr__(self, "rope_scaling", tuple(self.rope_scaling))  # a list, in a file
            check_rope_scaling(self.rope_scaling)
        for name in ("norm_eps", "rope_theta", "embedding_std"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")

    @property
    def rotary(self):
        """Return whether queries and keys are rotated by their position."""
        return self.positions == "rotary"

    @property
    def plain_attention(self):
        """Return whether attention is GPT-2's: heads of equal number and width, no rotation, no norm, no window."""
        return not (self.rotary or self.qk_norm or self.kv_heads or self.head_dim or self.window)

    @property
    def head_size(self):
        """Return D, the channels of one head."""
        return self.width // self.heads if self.head_dim is None else self.head_dim

    @property
    def key_value_heads(self):
        """Return the number of heads of key and value."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def hidden_units(self):
        """Return the hidden units of the MLP."""
        if self.d_ff is not None:
            return self.d_ff
        return 8 * math.ceil(self.width / 3) if self.activation == "swiglu" else 4 * self.width


@dataclass(frozen=True)
class TransformerConfig:
    """Configuration of the encoder–decoder; the defaults give the base model of Vaswani et al. 2017, table 3."""

    source_vocab_size: int  # V of the source, padding included
    target_vocab_size: int  # V of the target, padding, begin and end included
    width: int = 512  # C
    heads: int = 8  # H; the head size is D = C / H
    layers: int = 6  # L, of the encoder and again of the decoder
    d_ff: int = 2048  # hidden units of each MLP
    dropout: float = 0.1
    context_length: int = 5000  # the longest source and the longest target: rows of the table of positions
    init: str = "small"  # see course_lib.common.initializer; "uniform" tables, times √C, would drown the positions
    dtype: str = "float32"

    def __post_init__(self):
        _whole(self, 1, "source_vocab_size", "target_vocab_size", "width", "heads", "d_ff", "context_length")
        _whole(self, 0, "layers")
        _heads_and_dropout(self)
        check_choice("init", self.init, SCHEMES)
        check_choice("dtype", self.dtype, PRECISIONS)
