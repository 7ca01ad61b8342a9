"""Pictures and widgets: attention, sampling, the course's figures, the live loss curve. No network, no CDN.

It imports inference and what lies below; only experiments may import it.
"""

from .attention_widget.lab import AttentionLab
from .attention_widget.learning import LearningView
from .attention_widget.view import AttentionView, attention_view
from .drawing import draw_encoder_decoder, draw_gpt
from .figures import figure, show
from .graphs import plot_graph
from .live import LivePlot
from .matrices import plot_heatmap
from .model_widget.view import ModelView, model_view
from .plots import plot_bars, plot_lines, plot_losses
from .sampler import SamplerView, sampler_view
from .steps_widget.view import StepsView

__all__ = [
    "AttentionLab",
    "AttentionView",
    "LearningView",
    "LivePlot",
    "ModelView",
    "SamplerView",
    "StepsView",
    "attention_view",
    "draw_encoder_decoder",
    "draw_gpt",
    "figure",
    "model_view",
    "plot_bars",
    "plot_graph",
    "plot_heatmap",
    "plot_lines",
    "plot_losses",
    "sampler_view",
    "show",
]
