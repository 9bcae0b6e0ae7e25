#!/usr/bin/env python3
"""reference.py [--every N] [--work N] [--align N] [--jobs N] [--reference FILE] [--csv FILE] [PROGRAM]

build/tl_plan on every public model and budget of remat_reference.csv (TL_SHARED, else ../shared), against the best row known
there at that budget or below. Each plan is replayed by check_schedule.py, which knows nothing of the library. A plan dearer than
the best row, a bound above a value that somebody reached, a proven value other than a proven row's, an invalid schedule or
one over its budget fails; prints one line a model, and the rows where the reference has a higher lower bound.
The places of its allocations are checked, too, and the arena is compared with the largest sum of live bytes, each rounded up to
the alignment: no arena is smaller. The reference knows no alignment: with one, dearer plans and budgets that no aligned plan fits
do not fail, and the column "worse" counts them.
--every N: every N-th row only; --align N: of all places (1); --work N: steps of search for each (the program's own limit); --reference FILE: other rows than
those of remat_reference.csv; --csv FILE: a line for each row, to compare two versions by.
Exit status 0 all hold, 1 not; without reference data one line SKIPPED and 0.
"""
import argparse, concurrent.futures, csv, importlib.util, json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
LAST_DIGIT = 1e-9                       # ratios in the reference have nine digits

def load_checker():
    spec = importlib.util.spec_from_file_location('check_schedule', os.path.join(ROOT, 'tools', 'check_schedule.py'))
    checker = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(checker)
    return checker

class Row:
    """What is known about one model at one budget."""
    def __init__(self, model, budget):
        self.model, self.budget = model, budget
        self.best, self.proven, self.bound, self.infeasible = None, None, None, False

def read_rows(path):
    rows, values = {}, {}
    for r in csv.DictReader(open(path)):
        key = r['instance'], int(r['budget_bytes'])
        if not os.path.exists(os.path.join(ROOT, 'models', r['instance'] + '.tlg')): continue
        row = rows.setdefault(key, Row(*key))
        if r['method'] == 'any' and r['total_cost_ratio'] == 'infeasible': row.infeasible = True
        if r['total_cost_ratio'] in ('infeasible', '-', ''): continue
        ratio = float(r['total_cost_ratio'])
        if r['method'].startswith('lower_bound'): row.bound = max(ratio, row.bound or 0)
        else: values.setdefault(key[0], []).append((key[1], ratio))
        if r['proven_optimal'] == '1': row.proven = min(ratio, row.proven or ratio)
    for row in rows.values():           # what fits less fits this budget
        fitting = [ratio for budget, ratio in values.get(row.model, []) if budget <= row.budget]
        if fitting: row.best = min(fitting)
    return [rows[key] for key in sorted(rows) if rows[key].infeasible or rows[key].best is not None]

def aligned_peak(allocations, align):
    """The largest sum of bytes, rounded up, that live in one step."""
    changes = {}
    for a in allocations:
        if a[0] != 'device' or a[7] <= a[6]: continue
        size = -(-a[5] // align) * align
        changes[a[6]] = changes.get(a[6], 0) + size
        changes[a[7]] = changes.get(a[7], 0) - size
    live = peak = 0
    for step in sorted(changes): live += changes[step]; peak = max(peak, live)
    return peak

def plan(checker, program, work, align, row):
    """(row, error or None, figures)"""
    model = os.path.join(ROOT, 'models', row.model + '.tlg')
    with tempfile.TemporaryDirectory() as folder:
        schedule, places = os.path.join(folder, 'schedule'), os.path.join(folder, 'places')
        command = [program, model, '--budget', str(row.budget), '--schedule', schedule, '--places', places, '--align', str(align), '--json', '-']
        if work: command += ['--work', str(work)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode not in (0, 2) or not done.stdout: return row, 'exit %d: %s' % (done.returncode, done.stderr.strip()), {}
        figures = json.loads(done.stdout)
        if row.infeasible: return row, None if done.returncode == 2 else 'a plan where none fits', figures
        if done.returncode == 2: return row, done.stderr.strip() if align == 1 else None, figures
        ledger = checker.Ledger()
        try:
            replayed = checker.replay(checker.load(model), list(checker.read_steps(schedule)), ledger=ledger)
            banks = checker.check_places(ledger.all, csv.DictReader(open(places)), align)
        except ValueError as e: return row, 'invalid schedule or places: %s' % e, figures
    figures['aligned_peak_bytes'] = aligned_peak(ledger.all, align)
    if -(-banks.get(('device', '0'), 0) // align) * align != figures['arena_bytes']: return row, 'the arena ends at %s' % banks, figures
    cost, base, bound = figures['total_cost'], figures['base_cost'], figures['lower_bound_cost']
    if (replayed['peak'], replayed['cost'], replayed['base']) != (figures['peak_bytes'], cost, base): return row, 'replayed: %s' % replayed, figures
    if figures['arena_bytes'] > row.budget: return row, 'over the budget', figures
    if bound > cost or figures['proven_optimal'] != (bound == cost): return row, 'the bound is none', figures
    if align == 1 and cost > (row.best + LAST_DIGIT) * base: return row, 'dearer than the best row by %.6f %%' % (100 * (cost / base / row.best - 1)), figures
    if align == 1 and bound > (row.best + LAST_DIGIT) * base: return row, 'the bound is above a schedule that exists', figures
    if align == 1 and row.proven is not None and abs(cost / base - row.proven) > 2 * LAST_DIGIT: return row, 'not the proven optimum', figures
    return row, None, figures

def write_rows(path, results):
    with open(path, 'w', newline='') as file:
        out = csv.writer(file)
        out.writerow(['model', 'budget_bytes', 'cost_ratio', 'best_ratio', 'bound_ratio', 'reference_bound_ratio', 'gap', 'work', 'seconds', 'fault'])
        for row, error, f in results:
            base = max(f.get('base_cost', 1), 1)
            out.writerow([row.model, row.budget, '%.9f' % (f['total_cost'] / base) if 'total_cost' in f else '', row.best,
                         '%.9f' % (f['lower_bound_cost'] / base) if 'lower_bound_cost' in f else '', row.bound, f.get('gap'), f.get('work'), f.get('seconds'), error or ''])

def main():
    ap = argparse.ArgumentParser(); ap.add_argument('program', nargs='?', default='build/tl_plan')
    ap.add_argument('--every', type=int, default=1); ap.add_argument('--work', type=int); ap.add_argument('--align', type=int, default=1); ap.add_argument('--jobs', type=int, default=1)
    ap.add_argument('--reference', default=os.path.join(ROOT, 'remat_reference.csv')); ap.add_argument('--csv')
    a = ap.parse_args()
    if not os.path.exists(a.reference):
        print('SKIPPED reference: no reference data (remat_reference.csv)')
        return 0
    checker = load_checker()
    rows = read_rows(a.reference)[::a.every]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        results = list(pool.map(lambda row: plan(checker, os.path.abspath(a.program), a.work, a.align, row), rows))
    if a.csv: write_rows(a.csv, results)
    print('%-16s %5s %6s %7s %6s %11s %7s %9s %9s %12s %8s' % ('model', 'rows', 'equal', 'better', 'worse', 'infeasible', 'proven', 'gap mean', 'gap max', 'bound below', 'seconds'))
    failures, lower = [], []
    for model in sorted({row.model for row in rows}) + [None]:
        equal = better = worse = infeasible = proven = below = count = 0; gaps = []; seconds = 0.0
        for row, error, figures in results:
            if model not in (None, row.model): continue
            count += 1; seconds += figures.get('seconds', 0)
            if error and model: failures.append('%s at %d: %s' % (row.model, row.budget, error))
            if row.infeasible: infeasible += 1; continue
            if 'total_cost' not in figures: worse += 1; continue
            ratio = figures['total_cost'] / max(figures['base_cost'], 1)
            if ratio > row.best + LAST_DIGIT: worse += 1
            elif ratio < row.best - LAST_DIGIT: better += 1
            else: equal += 1
            proven += figures['proven_optimal']; gaps.append(100 * (figures['gap'] or 0))
            bound = figures['lower_bound_cost'] / max(figures['base_cost'], 1)
            if row.bound is not None and bound < row.bound - LAST_DIGIT:
                below += 1
                if model: lower.append('bound below: %s at %d: %.9f, reference %.9f' % (row.model, row.budget, bound, row.bound))
        print('%-16s %5d %6d %7d %6d %11d %7d %7.3f %% %7.3f %% %12d %8.1f' % (model or 'all', count, equal, better, worse, infeasible, proven,
              sum(gaps) / max(len(gaps), 1), max(gaps, default=0), below, seconds))
    for line in lower: print(line)
    placed = [f['arena_bytes'] / max(f['aligned_peak_bytes'], 1) for _, _, f in results if 'aligned_peak_bytes' in f]
    print('arena: %d of %d are the aligned live peak, at most %.6f times that; alignment %d' %
          (sum(ratio == 1 for ratio in placed), len(placed), max(placed, default=1), a.align))
    for line in failures: print('FAILED ' + line)
    return 1 if failures else 0

if __name__ == '__main__': sys.exit(main())
