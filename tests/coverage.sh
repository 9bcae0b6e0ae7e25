#!/usr/bin/env bash
# Run all test programs on parts that count their lines and branches, and look at the counts (tests/coverage.py).
#
#   tests/coverage.sh               a table of the parts; fails below the limits, or where tests/map.txt is not true
#   tests/coverage.sh --map         write tests/map.txt anew (make map); --lines, --branches: what is not run
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/coverage
rm -rf $dir/*.profiles
SAMPLE=${SAMPLE:-7} make -s -j"$(nproc 2>/dev/null || echo 2)" test B=$dir CC="${CLANG:-clang}" WERROR=-Werror RUNNER=tests/profile.sh \
    CFLAGS="-O1 -g1 -fprofile-instr-generate -fcoverage-mapping" > $dir.log 2>&1 || { cat $dir.log; exit 1; }
grep -E '^(ok|FAIL) ' $dir.log | sort -k 6 -n -r | head -n 12
tail -n 1 $dir.log
python3 tests/coverage.py $dir "$@"
