"""The one file that checks an aligner."""

import pytest

from barrierlab.model.suites.conformance import cases
from docs.aligner.aligner import PhasedAligner


@pytest.mark.parametrize("case", cases(PhasedAligner), ids=str)
def test_my_aligner(case):
    """It would not do what the protocol asks for: the message says where, and shows the shortest run."""
    case.check()
