"""What learners write, and what the check must say to it: exercise × wrong answer × words of the message.

A wrong answer is the solution with one piece replaced, or a whole function where the piece is "". Each is run by
test_exercise_answers.py: it must be refused, with these words under "Likely mistake" (or, behind "happened:", under
"What happened").

    WRONG         exercise: [(the slip, a piece of the solution, what stands there instead, words of the message)]
    WRONG_VALUES  question: [(the slip, the answer, words of the message)]

The rows stand in wrong_answers_NN_MM.py, by notebook.
"""

import wrong_answers_01_03
import wrong_answers_04_07
import wrong_answers_08_12
import wrong_answers_13

_PARTS = (wrong_answers_01_03, wrong_answers_04_07, wrong_answers_08_12, wrong_answers_13)
WRONG = {key: rows for part in _PARTS for key, rows in part.WRONG.items()}
WRONG_VALUES = {key: rows for part in _PARTS for key, rows in part.VALUES.items()}
