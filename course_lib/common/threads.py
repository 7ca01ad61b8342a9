"""The number of threads that NumPy and PyTorch use: both read it from the environment when they are loaded."""


def thread_variables(threads):
    """Return the environment variables, a dict of strings, that give a new process ``threads`` threads."""
    return dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
