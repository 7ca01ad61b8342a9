"""The attention view: a widget that works by mouse and keyboard, offline, and as a picture where there is no kernel.

``view.py`` and ``lab.py`` are the kernel's side, ``js/`` is the browser's, ``page.py`` makes pages that need neither
kernel nor network, and ``codec.py`` packs the weights.
"""
