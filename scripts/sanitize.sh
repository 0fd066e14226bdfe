#!/usr/bin/env bash
# Kernel, oracle and contract tests, with kernels that watch their memory (AddressSanitizer) and their
# arithmetic (UndefinedBehaviorSanitizer). The first finding ends the run, with its line of the C that
# Cython wrote, in build/cython, where comments name the lines of the kernel.
# On Linux with GCC, in an environment that has the extra "test" and Cython. Arguments for pytest, such
# as a file of tests, take the place of all tests.
# Run: bash scripts/sanitize.sh
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
watch="-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
CALDIST_REQUIRE_COMPILED=1 CFLAGS="-O1 -g -fno-omit-frame-pointer $watch" LDFLAGS="$watch" \
  python setup.py --quiet build --build-base "$work" --build-lib "$work/lib"

if [ $# = 0 ]; then
  set -- tests/kernels tests/measures tests/test_contract.py tests/data/test_sums.py \
    tests/data/test_random_labels.py tests/inference/test_resampling.py
fi
# Python was not built with them, so that they have to be there before it starts. What they write as
# the process ends, pytest must not catch.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so) $(gcc \
  -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
  PYTHONPATH="$work/lib" python -m pytest -q -x -m "slow or not slow" --capture=sys -p no:cacheprovider \
  "$@"
