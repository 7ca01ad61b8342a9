"""Pictures and widgets: attention, sampling, the course's figures, the live loss curve. No network, no CDN."""

from .attention import AttentionView, attention_view
from .attention_widget.lab import AttentionLab
from .figures import figure, show
from .graphs import plot_graph
from .live import LivePlot
from .matrices import plot_heatmap
from .plots import plot_bars, plot_lines, plot_losses
from .sampler import SamplerView, sampler_view

__all__ = [
    "AttentionLab",
    "AttentionView",
    "LivePlot",
    "SamplerView",
    "attention_view",
    "figure",
    "plot_bars",
    "plot_graph",
    "plot_heatmap",
    "plot_lines",
    "plot_losses",
    "sampler_view",
    "show",
]
