#!/usr/bin/env bash
# Ranks of examples/17_parallel.c. Threads: one is lost, and the others go on from the last save. Processes of Open MPI: the
# transport by itself, and losses, gradients and weights that are those of threads, to the last bit, with the same bytes on
# every rank; ranks that are stopped, silent or killed.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "$*" >&2; exit 1; }
out=build/check/mpi
mkdir -p $out
make -s build/17_parallel WERROR=-Werror

save=$out/save
threads() {     # NAME ARGUMENTS...
    timeout 300 build/17_parallel --quick --estimate "${@:2}" > $out/$1.txt 2> $out/$1.err || fail "threads, ${*:2}: exit $?: $(cat $out/$1.err)"
}
weights() { grep -o 'weights [0-9a-f]*$' $out/"$1".txt; }
fresh() { rm -f $save $save.*; }
threads calm --stages 3 --steps 12
fresh
threads lost --stages 3 --steps 12 --save $save --every 5 --lose 8
grep -q '^a rank is lost: 2 go on from step 5, 2 stages x 1 replicas$' $out/lost.txt || fail "a rank is lost: $(cat $out/lost.txt)"
[ "$(weights calm)" = "$(weights lost)" ] || fail "a rank is lost: other weights: $(cat $out/calm.txt $out/lost.txt)"
threads calm --stages 2 --replicas 2 --steps 9
fresh
threads first --stages 2 --replicas 2 --steps 4 --save $save
threads then --stages 1 --replicas 2 --steps 9 --save $save --resume
[ "$(weights calm)" = "$(weights then)" ] || fail "replicas of other stages: other weights: $(cat $out/calm.txt $out/then.txt)"
bits() { grep '^bits:' $out/"$1".txt; }
threads whole --stages 2 --replicas 2 --micro-batches 2
for zero in 1 2; do     # parts of what replicas have alike: with a micro-batch each the same bits
    threads part --stages 2 --replicas 2 --micro-batches 2 --zero $zero
    [ "$(bits whole)" = "$(bits part)" ] || fail "--zero $zero: other bits: $(cat $out/whole.txt $out/part.txt)"
done
threads part --stages 1 --replicas 3 --micro-batches 6 --zero 2
fresh
! build/17_parallel --quick --estimate --save $save --lose 2 > $out/lost.txt 2> $out/lost.err || fail "a rank is lost unsaved: exit 0"
grep -q 'a rank is lost, and nothing is saved to go on from' $out/lost.err || fail "a rank is lost unsaved: $(cat $out/lost.err)"
echo "threads: a rank is lost, and the others go on"

if ! command -v mpicc >/dev/null; then
    echo "SKIPPED mpi: no mpicc (Debian: openmpi-bin libopenmpi-dev)"
    [ "${STRICT:-0}" != 1 ] || fail "a skip is a failure here"
    exit
fi
make -s build/17_mpi WERROR=-Werror
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
compare 2 --stages 1 --replicas 2 --zero 2

# With measured costs and a measured link each start plans otherwise, and bits stay.
start -n 2 build/17_mpi --quick > $out/measured.mpi 2> $out/measured.err || fail "measured: exit $?: $(cat $out/measured.err)"
diff <(grep '^bits:' $out/--stages2.mpi) <(grep '^bits:' $out/measured.mpi) || fail "measured costs change losses or gradients"

# Two ranks that train until they are told otherwise:  endless ARGUMENTS...; then $job is their mpirun
job=
trap '[ -z "$job" ] || kill $job 2>/dev/null || true' EXIT
endless() {
    rm -f $out/long.err
    # shellcheck disable=SC2086
    mpirun $flags -n 2 build/17_mpi --quick --estimate --steps 1000000 "$@" > $out/long.txt 2> $out/long.err & job=$!
    for _ in $(seq 600); do ! grep -sq '^training: step' $out/long.err || return 0; sleep 0.1; done
    kill $job
    fail "no step within a minute: $(cat $out/long.err)"
}
rm -f $out/stopped $out/stopped.*
endless --save $out/stopped --every 1000000
kill -INT "$(pgrep -P $job 17_mpi | tail -n 1)"      # one rank is asked to stop: all of them end behind the same step
wait $job || fail "interrupted: exit $?: $(cat $out/long.err)"
grep -q '^to the bit: gradients of the first step yes, losses yes, weights yes' $out/long.txt ||
    fail "interrupted: $(cat $out/long.txt $out/long.err)"
grep -q "training: $(grep -o '^[0-9]* steps of' $out/long.txt | cut -d ' ' -f 1) 2 0 " $out/stopped ||
    fail "interrupted: not saved: $(cat $out/long.txt $out/stopped)"
echo "interrupted: $(grep 'steps of' $out/long.txt)"
endless --patience 2
kill -STOP "$(pgrep -P $job 17_mpi | tail -n 1)"
! wait $job || fail "a silent rank: exit 0"
grep -qE '^17_parallel: rank [01], step .*(peer lost|does not answer)$' $out/long.err || fail "a silent rank: $(cat $out/long.err)"
echo "a silent rank: $(grep -E '^17_parallel: rank 0' $out/long.err)"

# Ranks that are killed: the job ends, and what all ranks had saved goes on, with as many ranks or fewer, to the losses and
# weights of one process that nobody has disturbed.
# Three ranks that train and save, one of which is killed at a random moment after the first save:  strike FLAGS OF mpirun...
strike() {
    local code=0 ranks
    fresh
    # shellcheck disable=SC2086
    timeout -k 5 60 mpirun $flags "$@" -n 3 build/17_mpi --quick --estimate --steps 1000000 --patience 2 --save $save --every 2 \
        > $out/struck.txt 2> $out/struck.err & job=$!
    for _ in $(seq 300); do [ ! -e $save ] || break; sleep 0.1; done
    sleep "$(awk -v n=$RANDOM 'BEGIN {print n % 1000 / 1000}')"
    mapfile -t ranks < <(pgrep -P "$(pgrep -P $job)" 17_mpi)
    [ ${#ranks[@]} = 3 ] || fail "to be struck: ${#ranks[@]} ranks: $(cat $out/struck.err)"
    kill -KILL "${ranks[RANDOM % 3]}"
    wait $job || code=$?
    [ $code != 124 ] || fail "a rank was killed, and the job goes on: $(cat $out/struck.err)"
    step=$(sed 's/.*: \([0-9]*\) .*/\1/' $save)
    echo "a rank was killed: exit $code, $step steps saved"
}
go_on() {       # RANKS ARGUMENTS...
    start -n "$1" "${@:2}" --steps $((step + 3)) > $out/goes.txt 2> $out/goes.err || fail "$*: exit $?: $(cat $out/goes.err)"
    grep -q '^to the bit: gradients of the first step yes, losses yes, weights yes' $out/goes.txt || fail "$*: $(cat $out/goes.txt)"
    echo "$(grep '^from' $out/goes.txt), gone on with $1"
}
for ranks in 3 2 1; do
    strike
    go_on $ranks build/17_mpi --quick --estimate --save $save --resume
done
strike --continuous         # mpirun lets the others go on, and ends with 0: they say what to call
for rank in 0 1 2; do grep -q "^17_parallel: rank $rank: to go on from step $step: mpirun -n 2 " $out/struck.err && break; done ||
    fail "nobody says how to go on: $(cat $out/struck.err)"
read -ra call < <(sed -n 's/^17_parallel: rank .: to go on from step .*: mpirun -n 2 //p' $out/struck.err)
go_on 2 "${call[@]}"

# Bad input: a sentence, and no rank hangs.
refuse() {      # CODE SENTENCE ARGUMENTS OF mpirun...
    local code=0
    start "${@:3}" > $out/bad.txt 2> $out/bad.err || code=$?
    [ $code = "$1" ] && grep -qF -- "$2" $out/bad.err || fail "${*:3}: exit $code: $(cat $out/bad.err)"
}
refuse 1 '--stages 3 --replicas 1: MPI started 2 ranks' -n 2 build/17_mpi --quick --stages 3
refuse 3 'ranks were started with other options' -n 1 build/17_mpi --quick : -n 1 build/17_mpi --quick --seed 2
refuse 2 'no plan of a stage fits 1024 bytes' -n 2 build/17_mpi --quick --budget 1
refuse 1 'is there; --resume goes on from it, or remove it' -n 2 build/17_mpi --quick --save $save
refuse 1 'of another size, text, --micro-batches or --seed' -n 2 build/17_mpi --quick --save $save --resume --seed 2
refuse 1 'is not there, or not what --save leaves' -n 2 build/17_mpi --quick --save $out/nothing --resume
echo "bad input ends all ranks with a sentence"
