#!/usr/bin/env bash
# Ranks that are processes of Open MPI: the transport by itself, and examples/17_parallel.c, whose losses, gradients and
# weights are those of ranks that are threads, to the last bit, with the same bytes on every rank.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
if ! command -v mpicc >/dev/null; then
    echo "SKIPPED mpi: no mpicc (Debian: openmpi-bin libopenmpi-dev)"
    [ "${STRICT:-0}" != 1 ] || fail "a skip is a failure here"
    exit
fi
out=build/check/mpi
mkdir -p $out
make -s build/17_parallel build/17_mpi WERROR=-Werror
# vader is shared memory: nothing goes through a network.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
flags="--oversubscribe --mca btl self,vader"
start() { timeout 300 mpirun $flags "$@"; }         # shellcheck disable=SC2086  # flags are words

OMPI_CC=gcc mpicc -std=c99 -O0 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wno-misleading-indentation -Werror \
    -o $out/transport tests/mpi/transport.c -lm -lpthread
start -n 2 $out/transport || fail "tests/mpi/transport.c: exit $?"

# What both print of ranks and bits.
same() { grep -E '^(bits:|  rank |  one process  )' "$1"; }
compare() {     # RANKS ARGUMENTS...
    local name=$out/${*:2}
    name=${name// /}
    timeout 300 build/17_parallel --quick --estimate "${@:2}" > "$name.threads" 2> "$name.err" ||
        fail "threads, ${*:2}: exit $?: $(cat "$name.err")"
    start -n "$1" build/17_mpi --quick --estimate "${@:2}" > "$name.mpi" 2> "$name.err" ||
        fail "$1 ranks of MPI, ${*:2}: exit $?: $(cat "$name.err")"
    [ "$(same "$name.mpi" | grep -c '^  rank .* yes$')" = "$1" ] || fail "$1 ranks: not as planned: $(cat "$name.mpi")"
    diff <(same "$name.threads") <(same "$name.mpi") || fail "threads (<) and MPI (>) differ: ${*:2}"
    echo "$1 ranks ${*:2}: $(grep '^bits:' "$name.mpi")"
}
compare 2 --stages 2
compare 2 --stages 1 --replicas 2
compare 2 --stages 2 --chunks 2

# With measured costs and a measured link each start plans otherwise, and bits stay.
start -n 2 build/17_mpi --quick > $out/measured.mpi 2> $out/measured.err || fail "measured: exit $?: $(cat $out/measured.err)"
diff <(grep '^bits:' $out/--stages2.mpi) <(grep '^bits:' $out/measured.mpi) || fail "measured costs change losses or gradients"

# Two ranks that train until they are told otherwise:  endless ARGUMENTS...; then $job is their mpirun
endless() {
    # shellcheck disable=SC2086
    mpirun $flags -n 2 build/17_mpi --quick --estimate --steps 1000000 "$@" > $out/long.txt 2> $out/long.err & job=$!
    for _ in $(seq 600); do ! grep -q '^training: step' $out/long.err || return 0; sleep 0.1; done
    kill $job
    fail "no step within a minute: $(cat $out/long.err)"
}
endless
kill -INT "$(pgrep -P $job 17_mpi | tail -n 1)"      # one rank is asked to stop: all of them end behind the same step
wait $job || fail "interrupted: exit $?: $(cat $out/long.err)"
grep -q '^to the bit: gradients of the first step yes, losses yes, weights yes' $out/long.txt ||
    fail "interrupted: $(cat $out/long.txt $out/long.err)"
echo "interrupted: $(grep 'steps of' $out/long.txt)"
endless --patience 2
kill -STOP "$(pgrep -P $job 17_mpi | tail -n 1)"
! wait $job || fail "a silent rank: exit 0"
grep -qE '^17_parallel: rank [01], step .*(peer lost|does not answer)$' $out/long.err || fail "a silent rank: $(cat $out/long.err)"
echo "a silent rank: $(grep -E '^17_parallel: rank 0' $out/long.err)"

# Bad input: a sentence, and no rank hangs.
refuse() {      # CODE SENTENCE ARGUMENTS OF mpirun...
    local code=0
    start "${@:3}" > $out/bad.txt 2> $out/bad.err || code=$?
    [ $code = "$1" ] && grep -qF -- "$2" $out/bad.err || fail "${*:3}: exit $code: $(cat $out/bad.err)"
}
refuse 1 '--stages 3 --replicas 1: MPI started 2 ranks' -n 2 build/17_mpi --quick --stages 3
refuse 3 'ranks were started with other options' -n 1 build/17_mpi --quick : -n 1 build/17_mpi --quick --seed 2
refuse 2 'no plan of a stage fits 1024 bytes' -n 2 build/17_mpi --quick --budget 1
echo "bad input ends all ranks with a sentence"
