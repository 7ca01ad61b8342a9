"""Run systems of the course in full, in both tracks, and print what was expected beside what was measured.

    python -m course_lib.experiments.reproduce                    all of them
    python -m course_lib.experiments.reproduce c small            some of them

a: the first GPT of notebooks 04 and 05. c: the GPT of notebook 09 on the text hello. small: a GPT of 0.8 million
parameters on tinyshakespeare. trajectories: both tracks side by side in float64. It takes minutes, one process per
core. The exit code is 0 only if everything holds.
"""
