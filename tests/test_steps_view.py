"""The view of pictures in steps: in the kernel, in a saved notebook, and as a page."""

import pytest
import traitlets

from course_lib.views import StepsView
from course_lib.views.drawing import Drawing


def drawing(words):
    d = Drawing(100, 50, words)
    d.words(50, 25, words)
    return d


STEPS = [drawing("one"), drawing("two"), drawing("</script><img src=x onerror=alert(1)>")]


def test_what_a_notebook_stores():
    view = StepsView(STEPS[:2], label="Word", step=1)
    data, metadata = view._repr_mimebundle_()
    assert data["text/plain"] == repr(view) == "StepsView(2 steps; the last: two)"
    assert data["image/png"] == STEPS[1]._repr_mimebundle_()[0]["image/png"]
    assert metadata == {"image/png": {"alt": "two", "width": 100}}
    assert view.step == 1 and view.label == "Word"


def test_steps_that_do_not_exist_are_refused():
    view = StepsView(STEPS)
    with pytest.raises(traitlets.TraitError, match="from 0 to 2, got 3"):
        view.step = 3
    with pytest.raises(ValueError, match="no drawing"):
        StepsView([])


def test_a_page_holds_all_steps_and_nothing_that_runs(tmp_path):
    path = tmp_path / "steps.html"
    page = StepsView(STEPS).to_html(path)
    assert path.read_text(encoding="utf-8") == page
    assert page.count("</script>") == page.count("<script") and "<img src=x" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
