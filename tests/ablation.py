#!/usr/bin/env python3
"""ablation.py [--every N] [--graphs N] [--nodes FEWEST-MOST] [--work N] [--jobs N] [--only REGEX] [--csv FILE]

What each part of the planner of recomputation is worth: a library is built without it, and plans the same rows. A part is a line
of the tables in src/06_remat/planner/remat.c; those that give the first plan and the floor are taken out as well, to see who
stands in for them. Rows: every N-th (3) of remat_reference.csv (TL_SHARED, else ../shared) with places and with --live, and so
many (60) random layered graphs of 40 to 3000 nodes (--nodes), at 60 % and 25 % of what keeping everything takes, by three seeds,
at one byte, and at 25 % with copies to a host and with compressed ones.
For each part: rows that became dearer, cheaper or refused, name a higher least budget, have a lower bound; the largest and the mean
change of cost over all rows, in percent; processor time to plan without it, by that with it. The noise is what another seed of the search changes: first line.
"""
import argparse, concurrent.futures, csv, json, os, random, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
ROOT = os.environ.get('TL_SHARED', os.path.join(TOP, '..', 'shared'))
PART = '06_remat/planner/remat.c'
LINE = re.compile(r'^    \{ [01], \w+, (\w+) \},?\n', re.M)

def write_graph(path, seed, nodes):
    """Layers of one to four nodes, each reads one to three of the two layers below."""
    rng, layers, at = random.Random(seed), [[0]], 1
    with open(path, 'w') as out:
        out.write('tlg 1\nnode 0 x input fwd=0 bwd=0 out=4096 needs=none in=-\n')
        while at < nodes:
            layer, below = [], [n for l in layers[-2:] for n in l]
            for _ in range(min(rng.randint(1, 4), nodes - at)):
                reads = sorted(rng.sample(below, min(len(below), rng.randint(1, 3))))
                cost = rng.randint(1, 100)
                out.write('node %d n%d op fwd=%d bwd=%d out=%d needs=in in=%s\n' %
                          (at, at, cost, 2 * cost, 64 * rng.randint(1, 64), ','.join(map(str, reads))))
                layer.append(at)
                at += 1
            layers.append(layer)

def run(command, **how):
    return subprocess.run(command, check=True, cwd=TOP, **how)

def build(folder, text, part):
    """libtl_strategy.so without this part, in a folder; whole for None."""
    source, made = os.path.join(folder, 'changed.c'), os.path.join(folder, 'part.c')
    changed = re.sub(r'^    \{ [01], \w+, %s \},?\n' % (part or 'none'), '', text, flags=re.M)
    with open(source, 'w') as out: out.write(re.sub(r'\},(\n\};)', r'}\1', changed))
    with open(made, 'w') as out:
        out.write('#include "build/parts/above/%s.h"\n' % PART)
        out.flush()
        run(['awk', '-v', 'part=src/' + PART, '-f', 'tests/parts.awk', source], stdout=out)
    flags = ['-std=c99', '-ffp-contract=off', '-O2', '-w', '-fPIC', '-Ibuild/parts/public', '-I.', '-DTL_STRATEGY_IMPLEMENTATION']
    run(['cc', *flags, '-c', '-o', made + '.o', made])
    objects = [os.path.join('build/parts', line.split()[0][:-2] + '.o') for line in open(os.path.join(TOP, 'src/ORDER')) if line.split()[0].endswith('.c')]
    objects.remove(os.path.join('build/parts', PART[:-2] + '.o'))
    run(['cc', '-shared', '-o', os.path.join(folder, 'libtl_strategy.so'), made + '.o', *objects, '-lm', '-lpthread'])

def plan(folder, case, work):
    """(cost or None for a refusal, bound or the least budget that it names, processor seconds)"""
    model, budget, options = case
    command = ['build/tl_plan', model, '--budget', budget, '--json', '-', *options] + (['--work', str(work)] if work else [])
    with tempfile.TemporaryFile() as complaint:
        child = subprocess.Popen(command, cwd=TOP, env=dict(os.environ, LD_LIBRARY_PATH=folder), stdout=subprocess.PIPE, stderr=complaint)
        text = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        complaint.seek(0)
        if child.returncode not in (0, 2): sys.exit('%s: %s' % (' '.join(command), complaint.read().decode()))
    figures = json.loads(text)
    if child.returncode == 2: return None, figures['minimal_budget_bytes'], usage.ru_utime
    return figures['total_cost'], figures['lower_bound_cost'], usage.ru_utime

def compare(name, base, found):
    dearer = cheaper = refused = lower = higher = 0
    changes, seconds, before = [], 0, 0
    for (cost, bound, time), (c, b, t) in zip(base, found):
        seconds, before = seconds + t, before + time
        refused += c is None and cost is not None
        higher += c is None and cost is None and b > bound
        if c is None or cost is None: continue
        dearer, cheaper, lower = dearer + (c > cost), cheaper + (c < cost), lower + (b < bound)
        changes.append(100 * (c / max(cost, 1) - 1))
    return [name, dearer, cheaper, refused, higher, lower, '%.3f' % max(changes, default=0), '%.4f' % (sum(changes) / max(len(changes), 1)), '%.2f' % (seconds / max(before, 1e-9))]

def cases_of(a, folder):
    cases = []
    table = os.path.join(ROOT, 'remat_reference.csv')
    rows = []
    if os.path.exists(table):
        rows = sorted({(r['instance'], r['budget_bytes']) for r in csv.DictReader(open(table))})
    for model, budget in rows[::a.every]:
        path = os.path.join(ROOT, 'models', model + '.tlg')
        if os.path.exists(path): cases += [(path, budget, []), (path, budget, ['--live'])]
    fewest, most = map(int, a.nodes.split('-'))
    for i in range(a.graphs):
        path = os.path.join(folder, '%d.tlg' % i)
        write_graph(path, i, int(fewest * (most / fewest) ** (i / max(a.graphs - 1, 1))))
        cases += [(path, budget, ['--live', '--seed', str(seed)]) for budget in ('60%', '25%') for seed in (1, 2, 3)]
        cases += [(path, '1', ['--live']), (path, '25%', ['--host-budget', '50%', '--link', '12GB/s', '--cost-unit', 'ns']), (path, '25%', ['--codec', 'f16'])]
    return cases

def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('--every', type=int, default=3); ap.add_argument('--graphs', type=int, default=60); ap.add_argument('--nodes', default='40-3000'); ap.add_argument('--work', type=int)
    ap.add_argument('--jobs', type=int, default=os.cpu_count() or 1); ap.add_argument('--only', default='.'); ap.add_argument('--csv')
    a = ap.parse_args()
    run(['make', '-s', 'build/tl_plan', 'build/parts/libtl_strategy.so', 'LINKED=1'])
    text = open(os.path.join(TOP, 'src', PART)).read()
    parts = [p for p in dict.fromkeys(LINE.findall(text)) if re.search(a.only, p)]
    head = ['without', 'dearer', 'cheaper', 'refused', 'least higher', 'bound lower', 'most %', 'mean %', 'time']
    out = csv.writer(open(a.csv, 'w', newline='')) if a.csv else None
    if out: out.writerow(head)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        cases = cases_of(a, folder)
        build(folder, text, None)
        base = list(pool.map(lambda case: plan(folder, case, a.work), cases))
        print('%d rows, %d of them refused' % (len(cases), sum(cost is None for cost, _, _ in base)))
        print('%-28s %7s %8s %8s %13s %12s %8s %9s %6s' % tuple(head), flush=True)
        other = [(m, b, [w for w in o if w not in ('--seed', '1', '2', '3')] + ['--seed', '77']) for m, b, o in cases]
        rows = [('another seed', None, other)] + [(part, part, cases) for part in parts]
        for name, part, asked in rows:
            build(folder, text, part)
            row = compare(name, base, list(pool.map(lambda case: plan(folder, case, a.work), asked)))
            print('%-28s %7d %8d %8d %13d %12d %8s %9s %6s' % tuple(row), flush=True)
            if out: out.writerow(row)

if __name__ == '__main__': main()
