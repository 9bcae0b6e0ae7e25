#!/usr/bin/env bash
# Run all test programs on parts that count their lines and branches, and look at the counts (tests/coverage.py).
#
#   tests/coverage.sh               a table of the parts; fails below the limits, or where tests/map.txt is not true
#   tests/coverage.sh --map         write tests/map.txt anew (make map); --lines, --branches: what is not run
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/coverage
mkdir -p build
rm -rf $dir/*.profiles
SAMPLE=${SAMPLE:-7} make -s -j"$(nproc 2>/dev/null || echo 2)" test B=$dir CC="${CLANG:-clang}" WERROR=-Werror RUNNER=tests/profile.sh \
    CFLAGS="-O1 -g1 -fprofile-instr-generate -fcoverage-mapping" TEST_CFLAGS="-O1 -g1" > $dir.log 2>&1 || { cat $dir.log; exit 1; }
awk '/^ok / {print $(NF - 1), $0}' $dir.log | sort -n -r | cut -d ' ' -f 2- | sed -n '1,12p'
tail -n 1 $dir.log
python3 tests/coverage.py $dir "$@"
