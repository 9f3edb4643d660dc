"""Series: reads, checks and applies the patches that go on a base.

A series comes from ``patches/<series>/<base version>/`` (`load_series`) or from the pinned commits of a git
branch (`derive_series`). Either way it is parsed strictly, and whatever is unsafe, undeclared or no longer
needed is refused before a file is touched. `apply_series` then applies series in memory, exactly, and gives
the content of every changed file before and after; a patch that doesn't fit ends in a report of what was
expected and what was found. Nothing here knows of wheels: files of the base come through a function.
"""

from patchwheel.series.apply import Applied, apply_series
from patchwheel.series.git import derive_series
from patchwheel.series.load import load_series
from patchwheel.series.model import Series, SeriesFile
from patchwheel.series.paths import shapes_the_wheel
from patchwheel.series.subset import leave_out

__all__ = [
    "Applied",
    "Series",
    "SeriesFile",
    "apply_series",
    "derive_series",
    "leave_out",
    "load_series",
    "shapes_the_wheel",
]
