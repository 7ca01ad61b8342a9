"""Track one: a GPT on NumPy alone, with an autograd of its own.

Every file here has a twin of the same name in ``course_lib.torch_track``.
"""
