#!/usr/bin/env python3
"""What the whole process takes while it trains inside a budget, as the system counts it.

    make build/01_train_text && python3 tests/bench/rss.py [PROGRAM]

Each budget is a process of its own (01_train_text --budget). Its largest resident set (wait4), less the bytes that it
says it took for the step, weights and optimizer among them, is everything else: code, libraries, stack, text, graph,
plan and the bookkeeping of the run. That must not depend on the budget. What planners have freed the C library gives
back to the system (its thresholds are set so), as far as it was not the largest set itself.
"""
import os, re, subprocess, sys, tempfile

BUDGETS = ['100%', '80%', '60%', '40%', '25%']
NETWORK = ['--width', '96', '--context', '64', '--batch', '64', '--steps', '3', '--seconds', '0', '--sample', '0',
           '--plan', 'layers', '--estimate']


def train(program, budget, folder):
    """Output and largest resident bytes of one run."""
    with tempfile.TemporaryFile('w+') as out:
        child = subprocess.Popen([program, *NETWORK, '--budget', budget, '--out', folder], stdout=out,
                                 env={**os.environ, 'MALLOC_MMAP_THRESHOLD_': '16384', 'MALLOC_TRIM_THRESHOLD_': '0'})
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    if child.returncode:
        sys.exit('%s --budget %s: exit code %d' % (program, budget, child.returncode))
    return text, usage.ru_maxrss * 1024


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else 'build/01_train_text'
    print('%8s %12s %14s %14s' % ('budget', 'taken', 'resident set', 'all the rest'))
    rests = []
    with tempfile.TemporaryDirectory() as folder:
        for budget in BUDGETS:
            text, resident = train(program, budget, folder)
            taken = int(re.search(r'^budget +\d+ +\d+ +\d+ +(\d+) ', text, re.M).group(1))
            rests.append(resident - taken)
            print('%8s %12d %14d %14d' % (budget, taken, resident, rests[-1]), flush=True)
    print('the rest: %.2f to %.2f MB' % (min(rests) / 1e6, max(rests) / 1e6))


if __name__ == '__main__':
    main()
