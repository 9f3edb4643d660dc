"""patchwheel builds, checks, packages and proves a patched vLLM wheel."""

__version__ = "0.1.0"
