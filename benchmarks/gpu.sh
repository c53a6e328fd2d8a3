#!/usr/bin/env bash
# Tests, measures and profiles what runs on a GPU, in about eight minutes:
#
#     bash benchmarks/gpu.sh [FOLDER]
#
# It needs a GPU, and a Python with PyTorch for it: `python3`, or the one that the variable PYTHON names. What else is
# missing there is installed into an environment in FOLDER (default: build/gpu), which also takes all that is printed.
# TEXT may name a text, one sentence a line, to measure on. The exit status is that of the tests.

set -uo pipefail
folder=$(realpath --canonicalize-missing "${1:-$(dirname "$0")/../build/gpu}")
own_text=(${TEXT:+--text "$(realpath "$TEXT")"})
python=$(command -v "${PYTHON:-python3}" | xargs -r realpath --no-symlinks)
cd "$(dirname "$0")/.." || exit 1
mkdir -p "$folder"

section() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
# What a driver holds up may not hear a first signal.
limited() { timeout --kill-after=5 "$@"; }

"$python" -c 'import torch; assert torch.cuda.is_available()' 2> "$folder/torch.txt" || {
  echo "${PYTHON:-python3} has no PyTorch that sees a GPU. Name one that has: PYTHON=/path/to/python bash benchmarks/gpu.sh" >&2
  tail -n 1 "$folder/torch.txt" >&2
  exit 2
}

section "What the Python lacks, and this package"
"$python" -m venv --without-pip "$folder/env" || exit 2
# All that the Python has, pip included, also if it is that of an environment.
"$python" -c 'import site, sys; print(*site.getsitepackages(), sep="\n")' > "$folder/parent.pth" &&
  mv "$folder/parent.pth" "$("$folder/env/bin/python" -c 'import site; print(site.getsitepackages()[0])')" || exit 2
if ! "$python" -c 'import allennlp, allennlp_models, h5py, spacy, pytest, pytest_timeout' 2> /dev/null; then
  # PyTorch stays the one for this GPU.
  grep --invert-match '^torch==' requirements.txt > "$folder/requirements.txt"
  "$folder/env/bin/python" -m pip install --quiet -r "$folder/requirements.txt" pytest pytest-timeout &&
    "$folder/env/bin/python" -m pip install --quiet --no-deps allennlp==2.10.1 allennlp-models==2.10.1 || exit 2
fi
python="$folder/env/bin/python"
"$python" -m pip install --quiet --no-deps --no-build-isolation --editable . || exit 2
export PYTHONUNBUFFERED=1

"$python" -c 'import torch; print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "CUDA", torch.version.cuda)'
git rev-parse HEAD 2> /dev/null

section "Tests"
limited 130 "$python" -m pytest -q -p no:cacheprovider tests/kernels/triton_kernels tests/kernels/gpu_test.py \
  tests/kernels/lstm/replay tests/kernels/lstm/memory_cells/jitted_test.py tests/gpu_test.py 2>&1 |
  tee "$folder/tests.txt" | tail -n 15
tests=${PIPESTATUS[0]}

all=(--model small original --task inference training --dtype float32 bfloat16 "${own_text[@]}")

for triton in 0 auto; do
  section "Speed beside AllenNLP, $([ $triton = 0 ] && echo without || echo with) Triton's kernels"
  ELMO_SCRATCH_TRITON=${triton/auto/} limited 110 "$python" benchmarks/embed.py "${all[@]}" --repeats 3 --batches 4 2>&1 |
    tee "$folder/embed_$triton.txt" | grep '^{' | "$python" -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print("{model:>8} {task:>9} {dtype:>8} {tokens_per_s:>9,.0f} {allennlp_tokens_per_s:>8,.0f} {ratio:>6} x, ".format(**row)
          + "{share_of_product_rate:.1%} of the product rate, {largest_difference:.1e} apart".format(**row), flush=True)'
done

for dtype in float32 bfloat16; do
  section "Pre-training, small, $dtype"
  limited 40 "$python" benchmarks/train.py --dtype $dtype --epochs 3 "${own_text[@]}" 2>&1 |
    tee "$folder/train_$dtype.txt" | tail -n 12
done

section "Where the time of a batch goes"
limited 50 "$python" benchmarks/gpu_profile.py "${all[@]}" --batches 4 2>&1 | tee "$folder/profile.txt"

section "Done; all that was printed lies in $folder"
exit "$tests"
