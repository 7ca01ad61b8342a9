"""Exercise of notebook 09: AdamW."""

import numpy as np

from .cases import arrays
from .exercise import Mistake, exercise


def _adamw(p, grad, m, v, step, rate, decay, corrected=True, coupled=False, inside=False, squared=True, slow=True):
    """One step, and its typical slips."""
    new = grad + decay * p if coupled else grad
    m = 0.9 * m + 0.1 * new
    v = 0.999 * v + 0.001 * (new * new if squared else new)
    m_hat, v_hat = (m / (1 - 0.9**step), v / (1 - 0.999**step)) if corrected else (m, v)
    root = np.sqrt(v_hat + 1e-8) if inside else np.sqrt(v_hat) + 1e-8
    shrunk = p if coupled else p - (rate if slow else 1) * decay * p
    return shrunk - rate * m_hat / root, m, v


@exercise(
    "09.2",
    "One step of AdamW",
    minutes=20,
    difficulty="harder",
    task="""
Write one step. m and v are the running means of the gradient and of its square (β₁ = 0.9, β₂ = 0.999), `step` counts
from 1, ε = 1e-8. The weight decay acts on p itself and not on the gradient. Return the new (p, m, v).
""",
    hints=(
        "m ← 0.9 m + 0.1 g and v ← 0.999 v + 0.001 g².",
        "Both start at 0, so they are too small at first: divide m by 1 - 0.9ᵗ and v by 1 - 0.999ᵗ, t = step. The state"
        " that you return is the one before this correction.",
        "p ← p - rate · decay · p - rate · m̂ / (√v̂ + ε).",
    ),
    next_thought="In the first step m̂ / √v̂ is ±1, whatever the size of the gradient. Why is a warm-up good, then?",
    cases=lambda: [
        (*arrays(0, (2, 3), (2, 3)), np.zeros((2, 3)), np.zeros((2, 3)), 1, 0.1, 0.0),
        (*arrays(1, (4,), (4,)), np.zeros(4), np.zeros(4), 1, 0.1, 0.5),
        (*arrays(2, (3,), (3,), (3,)), np.abs(*arrays(3, (3,))), 5, 0.01, 0.1),
        (*arrays(4, (3,)), np.full(3, 1e-9), np.zeros(3), np.zeros(3), 1, 0.1, 0.1),
        tuple(a.astype("float32") for a in (*arrays(5, (3,), (3,), (3,)), np.abs(*arrays(6, (3,))))) + (2, 0.1, 0.1),
    ],
    right=_adamw,
    forbids=("AdamW", "Adam", "Optimizer"),
    mistakes=(
        Mistake(
            "the means are not corrected for their start at 0: m̂ = m / (1 - 0.9ᵗ)",
            lambda *a: _adamw(*a, corrected=False),
        ),
        Mistake(
            "the decay is added to the gradient (that is Adam with L2): it acts on p directly",
            lambda *a: _adamw(*a, coupled=True),
        ),
        Mistake("the ε is added after the root, not under it", lambda *a: _adamw(*a, inside=True)),
        Mistake("`v` is the mean of the squared gradient", lambda *a: _adamw(*a, squared=False)),
        Mistake("the decay goes with the rate: rate · decay · p", lambda *a: _adamw(*a, slow=False)),
        Mistake(
            "the corrections count from 1 and take `step` as it is: 1 - 0.9**step",
            lambda p, g, m, v, step, *a: (_adamw(p, g, m, v, step + 1, *a)[0], *_adamw(p, g, m, v, step, *a)[1:]),
        ),
        Mistake("the decay is missing: p also shrinks by rate · decay · p", lambda *a: _adamw(*a[:-1], 0.0)),
        Mistake(
            "the sign: p moves against the gradient",
            lambda p, g, *a: (2 * p * (1 - a[3] * a[4]) - _adamw(p, g, *a)[0], *_adamw(p, g, *a)[1:]),
        ),
        Mistake(
            "return the running means themselves; the correction is only for this step",
            lambda p, g, m, v, t, *a: (lambda q, m, v: (q, m / (1 - 0.9**t), v / (1 - 0.999**t)))(
                *_adamw(p, g, m, v, t, *a)
            ),
        ),
        Mistake(
            "the root of v̂ is missing",
            when=lambda got, want, case: (
                not np.allclose(got[0], want[0])
                and np.allclose(
                    got[0],
                    case[0] * (1 - case[5] * case[6])
                    - case[5] * want[1] / (1 - 0.9 ** case[4]) / (want[2] / (1 - 0.999 ** case[4]) + 1e-8),
                )
            ),
        ),
    ),
)
def adamw_step(p, grad, m, v, step, rate, decay):
    """One step of AdamW: the new p, m and v, arrays of the shape of p."""
    m = 0.9 * m + 0.1 * grad
    v = 0.999 * v + 0.001 * grad**2
    m_hat = m / (1 - 0.9**step)
    v_hat = v / (1 - 0.999**step)
    p = p - rate * decay * p - rate * m_hat / (np.sqrt(v_hat) + 1e-8)
    return p, m, v
