#!/usr/bin/env python3
"""replay_exported.py DIR

Replays the plans that tests/test_6_properties.c wrote with TL_EXPORT=DIR by check_schedule.py of the reference data (TL_SHARED,
else ../shared), which knows nothing of the library: each must be valid, within its budgets, and reach the figures in index.csv.
Exit status 0 all hold, 1 not; without reference data one line SKIPPED and 0.
"""
import csv, os, sys
from differential_plan import Rate, load_checker

def judge(checker, folder, row, graphs):
    """None, or what is wrong."""
    model, schedule = row[:2]
    inference, budget, host, rate, latency, peak, host_peak, cost = map(int, row[2:])
    nodes = graphs.get(model) or graphs.setdefault(model, checker.load(os.path.join(folder, model)))
    link = Rate(rate if host else 0)
    try: r = checker.replay(nodes, list(checker.read_steps(os.path.join(folder, schedule))), bool(inference), link, latency if host else 0)
    except ValueError as e: return str(e)
    if (r['peak'], r['host_peak'], r['cost']) != (peak, host_peak, cost): return 'replayed to %s, planned %s' % (r, row)
    if r['peak'] > budget or r['host_peak'] > host: return 'over its budget: %s' % r
    return None

def main():
    if len(sys.argv) != 2: print(__doc__.split('\n')[0], file=sys.stderr); return 1
    checker = load_checker()
    rows = list(csv.reader(open(os.path.join(sys.argv[1], 'index.csv'))))
    graphs, broken = {}, 0
    for row in rows:
        why = judge(checker, sys.argv[1], row, graphs)
        if why: print('FAILED %s: %s' % (row[1], why)); broken += 1
    print('%d plans of %d graphs replayed, %d refused' % (len(rows), len(graphs), broken))
    return 1 if broken or not rows else 0

if __name__ == '__main__': sys.exit(main())
