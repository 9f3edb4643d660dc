"""Acceptance: does a served wheel accept exactly what it must?

`canary` has the models and prompts, `reference` decodes them in plain torch, and `gate` says in data what is served and
what must come out. `server` and `client` speak to vLLM, `trial` measures one row, `table` judges it, `run` does that
for all rows, and `prove` builds and installs what is served.

`reference` is run by the Python of an environment that has torch; everything else here does without.
"""
