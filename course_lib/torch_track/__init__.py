"""Track two: the same GPT in raw PyTorch, used only as a matrix library that can differentiate.

Every file here has a twin of the same name in ``course_lib.numpy_track``.
"""
