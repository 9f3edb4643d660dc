"""Acceptance: the reference decoder, and the canary that shows any fault of the chain.

`patchwheel.acceptance.reference` needs torch and is run by the Python of an environment that has it; everything else
here does without.
"""
