"""Probes: assertions that a patch is present and acts.

Static ones look at the source in a wheel (`Reader`); behavioural ones call it after the wheel is installed
(``calls.py``, which runs in the wheel's environment and imports nothing of patchwheel). Both are listed in
``manifests/probes/<series>.toml``, with the rules by which a release is told to need a patch or not.
"""

from patchwheel.probes.look import Reader, Seen
from patchwheel.probes.model import SeriesProbes, load_probes

__all__ = ["Reader", "Seen", "SeriesProbes", "load_probes"]
