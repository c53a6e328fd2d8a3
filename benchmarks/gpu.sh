#!/usr/bin/env bash
# Tests, measures and profiles what runs on a GPU, in about eight minutes:
#
#     bash benchmarks/gpu.sh [FOLDER]
#
# It needs a GPU, and a Python with PyTorch for it: `python3`, or the one that the variable PYTHON names. What else is
# missing there is installed into an environment in FOLDER (default: build/gpu), which also takes all that is printed.
# TEXT may name a text, one sentence a line, to measure on. The exit status is that of the tests.

set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
folder=${1:-build/gpu}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
python=${PYTHON:-python3}

section() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }

"$python" -c 'import torch; assert torch.cuda.is_available()' 2> "$folder/torch.txt" || {
  echo "$python has no PyTorch that sees a GPU. Name one that has: PYTHON=/path/to/python bash benchmarks/gpu.sh" >&2
  tail -n 1 "$folder/torch.txt" >&2
  exit 2
}

section "What the Python lacks"
if ! "$python" -c 'import allennlp, allennlp_models, h5py, spacy, pytest' 2> /dev/null; then
  "$python" -m venv --system-site-packages "$folder/env" || exit 2
  python="$folder/env/bin/python"
  # PyTorch stays the one for this GPU.
  grep --invert-match '^torch==' requirements.txt > "$folder/requirements.txt"
  "$python" -m pip install --quiet -r "$folder/requirements.txt" pytest pytest-timeout &&
    "$python" -m pip install --quiet --no-deps allennlp==2.10.1 allennlp-models==2.10.1 || exit 2
fi
"$python" -m pip install --quiet --no-deps --no-build-isolation --editable . ||
  echo "not run: compiled code for the processor, which can't be built here"
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1

"$python" -c 'import torch; print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "CUDA", torch.version.cuda)'
git rev-parse HEAD 2> /dev/null

section "Tests"
timeout 130 "$python" -m pytest -q -p no:cacheprovider tests/kernels/triton_kernels tests/kernels/gpu_test.py \
  tests/kernels/lstm/replay tests/kernels/lstm/memory_cells/jitted_test.py tests/gpu_test.py 2>&1 |
  tee "$folder/tests.txt" | tail -n 15
tests=${PIPESTATUS[0]}

own_text=(${TEXT:+--text "$TEXT"})
all=(--model small original --task inference training --dtype float32 bfloat16 "${own_text[@]}")

for triton in 0 auto; do
  section "Speed beside AllenNLP, $([ $triton = 0 ] && echo without || echo with) Triton's kernels"
  ELMO_SCRATCH_TRITON=${triton/auto/} timeout 110 "$python" benchmarks/embed.py "${all[@]}" --repeats 3 --batches 4 2>&1 |
    tee -a "$folder/embed_$triton.txt" | grep '^{' | "$python" -c '
import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print("{model:>8} {task:>9} {dtype:>8} {tokens_per_s:>9,.0f} {allennlp_tokens_per_s:>8,.0f} {ratio:>6} x, ".format(**row)
          + "{share_of_product_rate:.1%} of the product rate, {largest_difference:.1e} apart".format(**row), flush=True)'
done

for dtype in float32 bfloat16; do
  section "Pre-training, small, $dtype"
  timeout 40 "$python" benchmarks/train.py --dtype $dtype --epochs 3 "${own_text[@]}" 2>&1 |
    tee "$folder/train_$dtype.txt" | tail -n 12
done

section "Where the time of a batch goes"
timeout 50 "$python" benchmarks/gpu_profile.py "${all[@]}" --batches 4 2>&1 | tee "$folder/profile.txt"

section "Done; all that was printed lies in $folder"
exit "$tests"
