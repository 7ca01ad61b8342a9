"""The same models as one writes them in PyTorch every day: torch.nn.Module, its layers, its state_dict."""
