"""The attention view: a widget that works by mouse and by keyboard, offline, and without a kernel as a picture.

`view.py` and `lab.py` are the kernel's side, `js/` the browser's, `page.py` makes pages that need neither kernel nor
network, `codec.py` packs the weights.
"""
