"""Verify: every static check on a wheel, each with its evidence. No code of the wheel runs."""

from patchwheel.verify.report import Report, Result, Status
from patchwheel.verify.run import peek_record, verify_wheel
from patchwheel.verify.subject import Base

__all__ = ["Base", "Report", "Result", "Status", "peek_record", "verify_wheel"]
