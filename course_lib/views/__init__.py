"""Pictures and widgets: the attention view, the course's figures, the live loss curve. No network, no CDN."""

from .attention import AttentionView, attention_view
from .figures import figure, show
from .graphs import plot_graph
from .live import LivePlot
from .matrices import plot_heatmap
from .plots import plot_bars, plot_lines, plot_losses

__all__ = [
    "AttentionView",
    "LivePlot",
    "attention_view",
    "figure",
    "plot_bars",
    "plot_graph",
    "plot_heatmap",
    "plot_lines",
    "plot_losses",
    "show",
]
