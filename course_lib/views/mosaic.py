"""Many heads, or very large ones, as one array of pixels: drawn one by one, they would take matplotlib seconds."""

import numpy as np
from matplotlib.colors import to_rgb

from . import style
from .cells import HATCH, NOT_ALLOWED, colours

STRIPE = 7  # pixels from one stripe of the hatching to the next


class Mosaic:
    """The pixels of a picture of width × height inches: RGBA bytes, transparent where nothing has been drawn."""

    def __init__(self, width, height, limits):
        self.limits = limits
        size = [round(inches * style.PIXELS_PER_INCH) for inches in (height, width)]
        self.pixels = np.zeros((*size, 4), dtype=np.uint8)

    def put(self, matrix, allowed, x, y, width, height):
        """Draw a head with its top left corner at x, y (inches); a pixel shows the largest of the cells it covers."""
        scale = style.PIXELS_PER_INCH
        top, left = round(y * scale), round(x * scale)
        h, w = max(1, round(height * scale)), max(1, round(width * scale))
        values = matrix if allowed is None else np.where(allowed, matrix, -np.inf)
        for axis, pixels in enumerate((h, w)):
            cells = values.shape[axis]
            starts = np.arange(pixels) * cells // pixels
            values = np.maximum.reduceat(values, starts, axis) if cells > pixels else values.take(starts, axis)
        may = np.isfinite(values)
        rgba = np.rint(colours(np.where(may, values, self.limits[0]), self.limits) * 255).astype(np.uint8)
        if not may.all():
            rows, columns = np.ogrid[top : top + h, left : left + w]
            stripes = np.where(((rows + columns) % STRIPE < 1)[..., None], to_rgb(HATCH), to_rgb(NOT_ALLOWED))
            rgba[~may, :3] = np.rint(255 * stripes[~may])
        self.pixels[top : top + h, left : left + w] = rgba
