"""Build: turn a plan into a wheel. One module per strategy, and the record that every wheel carries."""

from patchwheel.build.overlay import Built, write_overlay
from patchwheel.build.record import BuildRecord, make_record

__all__ = ["BuildRecord", "Built", "make_record", "write_overlay"]
