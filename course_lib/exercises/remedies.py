"""Words of an error that learners meet who know another library, and what to write instead."""

# (words that the message of the exception has, what to write)
_REMEDIES = (
    ("'keepdim'", "NumPy and Tensor call it keepdims=True"),
    ("'Tensor' object has no attribute 'transpose'", "a Tensor has x.swapaxes(1, 2)"),
    ("'Tensor' object has no attribute 'permute'", "a Tensor has x.swapaxes(1, 2)"),
    ("'Tensor' object has no attribute 'view'", "a Tensor has x.reshape(...)"),
    ("'Tensor' object has no attribute 'var'", "take the mean of the squares: (c * c).mean(axis=-1, keepdims=True)"),
    ("'Tensor' object has no attribute 'std'", "take the mean of the squares, and its root: (...) ** 0.5"),
    ("'Tensor' object has no attribute 'rsqrt'", "write 1 / x.sqrt(), or x ** -0.5"),
    ("'Tensor' object has no attribute 'square'", "write x * x"),
    (
        "'Tensor' does not support ufuncs",
        "NumPy's functions take no Tensor; write x.sqrt() or x ** 0.5, x.exp(), x.log()",
    ),
    ("this Tensor has a gradient", "a detached array cuts the gradient; stay with the Tensor and its own methods"),
    ("Tensor.mean() got an unexpected keyword argument 'dtype'", "write x.mean(axis=-1, keepdims=True), not np.mean"),
    ("Tensor.sum() got an unexpected keyword argument 'out'", "write x.sum(axis=-1, keepdims=True), not np.sum"),
    ("Tensor.max() got an unexpected keyword argument 'out'", "write x.max(axis=-1, keepdims=True), not np.max"),
    ("axes don't match array", "an array's transpose wants all axes; x.swapaxes(1, 2) exchanges two"),
    ("'numpy.ndarray' object has no attribute 'permute'", "an array has x.transpose(...) and x.swapaxes(1, 2)"),
    ("'numpy.ndarray' object has no attribute 'sqrt'", "write np.sqrt(x)"),
    ("'numpy.ndarray' object has no attribute 'exp'", "write np.exp(x)"),
)


def remedy(message):
    """What to write instead, in brackets behind a space; empty where nothing is known."""
    return next((f" ({words})" for known, words in _REMEDIES if known in message), "")
