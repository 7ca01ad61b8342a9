"""The model view: a whole GPT at work on a text, drawn as the road of its residual stream.

``view.py`` is the kernel's side, ``plan.py`` says what the model is made of, ``still.py`` draws the picture for pages
without a kernel, and ``js/`` is the browser's side, on top of that of the attention view. It imports inference and what
lies below, and the attention view.
"""
