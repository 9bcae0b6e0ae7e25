#!/usr/bin/env python3
"""cpsat_remat.py solve|beat|check [options] RESULTS.csv
cpsat_remat.py small

Plans of OR-tools' CP-SAT (pip install ortools) beside those of build/tl_plan: never cheaper than ours, never below our bound.
Reference data is read from TL_SHARED, else ../shared; not part of any check.

  solve  each graph and budget for --seconds, rows appended to RESULTS.csv; what has a row of as many seconds is left out.
         The solver begins with the plan of tl_plan where that can be written in its form (not with --no-hint)
  beat   the same, but only a plan cheaper than tl_plan's is asked for: "infeasible" proves that there is none in this form
  check  all rows of RESULTS.csv against --program: prints a line each and the counts; exit status 1 where one fails
  small  the model itself against brute_force.py on the small graphs: never below its optimum, and how often equal

The form is that of MOCCASIN (Bartan et al., 2023, arXiv:2304.14463): a node runs at most --intervals times, and each of its tensors
stays from a run to the end of an interval; one cumulative constraint over all events holds the memory. The events are those of
DESIGN section 4: a stage for each first forward in listing order, one for each backward in reverse listing order; within a stage
nodes run in listing order, before its event. A first forward may come later than its stage, a node that nothing needs does not
run, saved tensors are made by one of the runs and live until the backward, runs in place end the interval of their input.
Every schedule found is replayed by check_schedule.py: its cost is the one that counts.
"""
import argparse, csv, glob, importlib.util, json, os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', '..', 'shared'))
FIELDS = ['graph', 'nodes', 'budget_bytes', 'percent', 'intervals', 'seconds', 'mode', 'status', 'cost', 'bound_in_form', 'peak_bytes', 'ours', 'spent']

def load(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(ROOT, 'tools', name + '.py'))
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(ROOT, 'tools'))
    spec.loader.exec_module(module)
    return module

class Form:
    """One graph at one budget as a CP-SAT model."""
    def __init__(self, nodes, budget, intervals, below=None):
        from ortools.sat.python import cp_model
        self.cp, self.model, self.nodes, self.C = cp_model, cp_model.CpModel(), nodes, intervals
        n = self.n = len(nodes)
        self.width = n + 1                              # events of a stage: node v at place v, its backward at place n
        self.order = [v.id for v in reversed(nodes) if v.grad]
        self.turn = {v: k for k, v in enumerate(self.order)}
        self.stages = n + len(self.order)
        self.end = self.stages * self.width
        self.free = budget - sum(sum(v.out) for v in nodes if v.op == 'input')
        self.items = []                                 # (interval, bytes)
        self.runs = {v.id: self.make_runs(v) for v in nodes if v.op != 'input'}
        for v in nodes:
            if v.op != 'input': self.read_inputs(v)
        for v in self.order: self.read_backward(nodes[v])
        self.results()
        self.gradients()
        self.model.AddCumulative([i for i, _ in self.items], [b for _, b in self.items], max(self.free, 0))
        self.base = sum(nodes[v].bwd for v in self.order)
        cost = sum(r.there * v.fwd for v in nodes if v.op != 'input' for r in self.runs[v.id])
        if below is not None: self.model.Add(cost + self.base <= below - 1)
        self.model.Minimize(cost)

    def backward_at(self, v): return (self.n + self.turn[v]) * self.width + self.n

    def make_runs(self, v):
        class Run: pass
        m, runs = self.model, []
        last = self.backward_at(v.id) if v.grad else self.end - 1
        for k in range(self.C):
            r = Run(); r.there = m.NewBoolVar('')
            r.stage = m.NewIntVar(v.id, self.stages - 1, '')
            r.start = m.NewIntVar(v.id * self.width, self.end, '')
            m.Add(r.start == r.stage * self.width + v.id)
            r.ends = []
            for size in v.out:
                end = m.NewIntVar(0, self.end, ''); length = m.NewIntVar(1, self.end, '')     # [start, end): end - 1 is the last event
                r.ends.append(end)
                self.items.append((m.NewOptionalIntervalVar(r.start, length, end, r.there, ''), size))
                if k:
                    for before in runs[-1].ends: m.Add(r.start >= before).OnlyEnforceIf(r.there)
            if k: m.AddImplication(r.there, runs[-1].there)
            if v.fwork: self.items.append((m.NewOptionalFixedSizeIntervalVar(r.start, 1, r.there, ''), v.fwork))
            r.in_place = None
            source = v.ins[v.inplace] if v.inplace is not None else None
            if source and self.nodes[source[0]].op != 'input' and v.ins.count(source) == 1 and v.out[0] == self.nodes[source[0]].out[source[1]]:
                r.in_place = m.NewBoolVar('')
            if v.once and k: m.Add(r.there == 0)
            runs.append(r)
        if v.grad:
            m.Add(runs[0].there == 1)
            m.Add(runs[0].start < last)
        if v.grad and v.saved: self.save(v, runs, last)
        return runs

    def save(self, v, runs, last):
        """One run makes saved(v): it lives from there to the backward."""
        m = self.model
        saves = [m.NewBoolVar('') for _ in runs]
        m.AddExactlyOne(saves)
        for s, r in zip(saves, runs):
            m.AddImplication(s, r.there)
            length = m.NewIntVar(1, self.end, '')
            self.items.append((m.NewOptionalIntervalVar(r.start, length, last + 1, s, ''), v.saved))
            r.saves = s

    def covered(self, tensor, at, present, in_place=None):
        """Some run's tensor is resident at an event; in place, its interval ends there, before the event counts it."""
        m, chosen = self.model, []
        for r in self.runs[tensor[0]]:
            b = m.NewBoolVar(''); chosen.append(b)
            m.AddImplication(b, r.there)
            end = r.ends[tensor[1]]
            m.Add(r.start + 1 <= at).OnlyEnforceIf(b)
            if in_place is None: m.Add(end >= at + 1).OnlyEnforceIf(b)
            else:
                m.Add(end >= at + 1).OnlyEnforceIf(b, in_place.Not())
                m.Add(end == at).OnlyEnforceIf(b, in_place)
        if present is None: m.AddExactlyOne(chosen)
        else: m.AddBoolOr(chosen + [present.Not()])
        if in_place is not None: m.Add(sum(chosen) <= 1)

    def read_inputs(self, v):
        for r in self.runs[v.id]:
            for k, t in enumerate(v.ins):
                if self.nodes[t[0]].op == 'input' or t in v.ins[:k]: continue
                own = r.in_place if v.inplace is not None and t == v.ins[v.inplace] else None
                self.covered(t, r.start, r.there, own)

    def read_backward(self, v):
        for t in v.reads:
            if self.nodes[t[0]].op != 'input': self.covered(t, self.backward_at(v.id), None)
        if v.bwork:
            at = self.backward_at(v.id)
            self.items.append((self.model.NewFixedSizeIntervalVar(at, 1, ''), v.bwork))

    def results(self):
        for v in self.nodes:
            if v.op == 'input' or not v.keep: continue
            for k in range(len(v.out)): self.covered((v.id, k), self.end - 1, None)

    def gradients(self):
        """From the first backward that contributes to the backward of the maker."""
        first = {}
        for v in self.order:
            for t in [(v, k) for k in range(len(self.nodes[v].out))] + self.nodes[v].ins:
                if self.nodes[t[0]].grad: first.setdefault(t, self.backward_at(v))
        for t, at in first.items():
            size = self.nodes[t[0]].out[t[1]]
            if size: self.items.append((self.model.NewFixedSizeIntervalVar(at, self.backward_at(t[0]) + 1 - at, ''), size))

    def hint(self, steps):
        """Begin with a schedule. Runs that come in another order than this form has are moved to the next place that it has."""
        last, dropped, runs = -1, {}, {v: [] for v in self.runs}        # runs: [start, [end of each tensor]]
        for words in steps:
            v, _, k = words[1].partition('.'); v = int(v)
            if words[0] == 'B': last = max(last, self.backward_at(v))
            elif words[0] in ('F', 'I', 'S'):
                stage = max(last // self.width, v)
                if stage * self.width + v <= last: stage += 1
                last = stage * self.width + v
                if words[0] == 'I':
                    source = self.nodes[v].ins[self.nodes[v].inplace]; runs[source[0]][-1][1][source[1]] = last
                if len(runs[v]) and any(e == self.end for e in runs[v][-1][1]): runs[v][-1][1] = [min(e, last) for e in runs[v][-1][1]]
                runs[v].append([last, [self.end] * len(self.nodes[v].out)])
            elif words[0] == 'D' and runs[v]:
                for j in [int(k)] if k else range(len(self.nodes[v].out)): runs[v][-1][1][j] = min(last + 1, runs[v][-1][1][j])
        for v, found in runs.items():
            for k, r in enumerate(self.runs[v]):
                self.model.AddHint(r.there, k < len(found))
                if k >= len(found): continue
                self.model.AddHint(r.stage, found[k][0] // self.width)
                for end, at in zip(r.ends, found[k][1]): self.model.AddHint(end, at)

    def solve(self, seconds, wall):
        solver = self.solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_deterministic_time = seconds
        solver.parameters.max_time_in_seconds = wall
        if self.free < 0: return 'INFEASIBLE'
        return solver.StatusName(solver.Solve(self.model))

    def schedule(self):
        """The steps of what was found."""
        value, events = self.solver.Value, []
        for v in self.order: events.append((self.backward_at(v), 1, 'B %d' % v))
        for v in self.runs:
            for r in self.runs[v]:
                if not value(r.there): continue
                at, node = value(r.start), self.nodes[v]
                taken = r.in_place is not None and value(r.in_place)
                events.append((at, 1, '%s %d' % ('S' if node.grad and node.saved and value(r.saves) else 'I' if taken else 'F', v)))
                for k, end in enumerate(r.ends): events.append((value(end), 0, 'D %d.%d' % (v, k)))
        # what an event in place takes over is not dropped; saved and in place at once is made as S and dropped after
        steps, taken = [], set()
        for at, kind, text in sorted(events):
            if text[0] == 'I': taken.add((at, self.nodes[int(text[2:])].ins[self.nodes[int(text[2:])].inplace]))
        for at, kind, text in sorted(events):
            if text[0] == 'D' and (at, tuple(map(int, text[2:].split('.')))) in taken: continue
            if text[0] == 'D' and at >= self.end: continue
            steps.append(text)
        return steps

def run_one(checker, path, budget, intervals, seconds, wall, below=None, steps=None):
    """(status, cost, bound in this form, peak)"""
    nodes = checker.load(path)
    form = Form(nodes, budget, intervals, below)
    if steps: form.hint(steps)
    status = form.solve(seconds, wall)
    if status not in ('OPTIMAL', 'FEASIBLE'): return status, None, None, None
    got = checker.replay(nodes, [s.split() for s in form.schedule()])
    if got['peak'] > budget or got['cost'] != form.solver.ObjectiveValue() + form.base:
        raise ValueError('%s at %d: replayed to %s, the solver says %s' % (path, budget, got, form.solver.ObjectiveValue() + form.base))
    return status, int(got['cost']), int(form.solver.BestObjectiveBound() + form.base), got['peak']

def ours(program, path, budget, work):
    """What the program says, with 'steps' where it has a plan."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = os.path.join(folder, 'schedule')
        command = [program, path, '--live', '--budget', str(budget), '--json', '-', '--schedule', schedule] + (['--work', str(work)] if work else [])
        done = subprocess.run(command, capture_output=True, text=True)
        figures = json.loads(done.stdout[done.stdout.index('{'):]) if '{' in done.stdout else {}
        if 'total_cost' in figures: figures['steps'] = [line.split() for line in open(schedule) if line.strip()]
    return figures

def intervals_for(count, steps):
    """Two more than our plan has, which is enough for the chains of one slot, and four in any case."""
    runs = {}
    for words in steps or []:
        if words[0] in ('F', 'I', 'S'): runs[words[1]] = runs.get(words[1], 0) + 1
    return min(max(max(runs.values(), default=0) + 2, 4), 12 if count <= 30 else 6)

def graphs():
    """Twelve of 10 to 60 nodes."""
    models = ['models/%s.tlg' % m for m in ('mlp8', 'unit20', 'unit50', 'vgg16', 'vgg16_rl', 'encoder2', 'resnet18', 'unet')]
    others = ['repro/planner/%s.tlg' % m for m in ('tenc', 'infeasible_at_least_32_2', 'infeasible_at_least_32_3')]
    return [os.path.join(ROOT, m) for m in models + others] + [os.path.join(HERE, '..', '..', 'examples', 'residual.tlg')]

def budgets(program, path):
    """(percent of the way from the least budget found to keep-all, bytes)"""
    least = ours(program, path, 1, None)
    low, high = least['minimal_budget_bytes'], least['keep_all_peak_bytes']
    return [(percent, low + (high - low) * percent // 100) for percent in (0, 8, 25, 60)]

def read_rows(path):
    return list(csv.DictReader(open(path))) if os.path.exists(path) else []

def solve(a, mode):
    checker, rows = load('check_schedule'), read_rows(a.results)
    with open(a.results, 'a', newline='') as file:
        out = csv.DictWriter(file, FIELDS)
        if not rows: out.writeheader()
        for path in graphs():
            name = os.path.splitext(os.path.basename(path))[0]
            known = sorted({(int(r['percent']), int(r['budget_bytes'])) for r in rows if r['graph'] == name})
            for percent, budget in known if len(known) == 4 else budgets(a.program, path):
                if any(r['graph'] == name and int(r['budget_bytes']) == budget and r['mode'] == mode and float(r['seconds']) >= a.seconds for r in rows): continue
                start, figures = time.process_time(), ours(a.program, path, budget, a.work)
                below = figures.get('total_cost') if mode == 'beat' else None
                count = len(checker.load(path))
                intervals = a.intervals or intervals_for(count, figures.get('steps'))
                status, cost, bound, peak = run_one(checker, path, budget, intervals, a.seconds, 3600, below, None if a.no_hint else figures.get('steps'))
                out.writerow(dict(zip(FIELDS, [name, count, budget, percent, intervals, a.seconds, mode, status, cost, bound, peak,
                                               figures.get('total_cost'), round(time.process_time() - start, 1)])))
                file.flush()
                print(name, percent, budget, mode, status, cost, bound, 'ours', figures.get('total_cost'), figures.get('lower_bound_cost'), flush=True)

def check(a):
    """Each graph and budget once: the cheapest plan known of CP-SAT against what the program says now."""
    best, tried, failed, counts = {}, {}, 0, {}
    for r in read_rows(a.results):
        key = r['graph'], int(r['budget_bytes']); tried.setdefault(key, set()).add((r['mode'], r['status']))
        if r['cost'] and (key not in best or int(r['cost']) < best[key]): best[key] = int(r['cost'])
    paths = {os.path.splitext(os.path.basename(p))[0]: p for p in graphs()}
    for key in tried:
        figures = ours(a.program, paths[key[0]], key[1], a.work)
        cost, bound, other = figures.get('total_cost'), figures.get('lower_bound_cost'), best.get(key)
        if other is None: verdict = 'no plan of theirs' if cost else 'no plan of either'
        elif cost is None: verdict = 'FAILED: no plan of ours'
        elif bound > other: verdict = 'FAILED: our bound is above their plan'
        elif other < cost: verdict = 'FAILED: theirs is cheaper'
        else: verdict = 'equal' if other == cost else 'ours is cheaper'
        if ('beat', 'INFEASIBLE') in tried[key] and cost: verdict += ', nothing cheaper in their form than when asked'
        failed += verdict.startswith('FAILED')
        counts[verdict] = counts.get(verdict, 0) + 1
        print('%-28s %14d  ours %s bound %s theirs %s: %s' % (key[0], key[1], cost, bound, other, verdict))
    for verdict, count in sorted(counts.items()): print('%5d  %s' % (count, verdict))
    return 1 if failed else 0

def small(a):
    """The form itself: never below the optimum of brute_force.py, and a schedule wherever it has one."""
    checker, equal, above, none, below = load('check_schedule'), 0, 0, 0, 0
    for r in csv.DictReader(open(os.path.join(ROOT, 'small', 'optimum.csv'))):
        if r['mode'] != 'training' or r['optimum_cost'] == 'infeasible': continue
        path = os.path.join(ROOT, 'small', r['model'] + '.tlg')
        status, cost, _, _ = run_one(checker, path, int(r['budget_bytes']), a.intervals or 6, 20, 200)
        optimum = int(r['optimum_cost'])
        equal += cost == optimum; above += cost is not None and cost > optimum; none += cost is None; below += cost is not None and cost < optimum
        if cost != optimum: print('%s at %s: optimum %d, this form %s (%s)' % (r['model'], r['budget_bytes'], optimum, cost, status), flush=True)
    print('%d equal, %d dearer, %d without a plan, %d below the optimum' % (equal, above, none, below))
    return 1 if below else 0

def main():
    ap = argparse.ArgumentParser(); ap.add_argument('what', choices=('solve', 'beat', 'check', 'small')); ap.add_argument('results', nargs='?', default='build/cpsat_remat.csv')
    ap.add_argument('--seconds', type=float, default=120, help='of the solver, by its own deterministic clock'); ap.add_argument('--intervals', type=int)
    ap.add_argument('--program', default='build/tl_plan'); ap.add_argument('--work', type=int)
    ap.add_argument('--no-hint', action='store_true')
    a = ap.parse_intermixed_args()
    if a.what == 'small': return small(a)
    if a.what == 'check': return check(a)
    solve(a, a.what)
    return 0

if __name__ == '__main__': sys.exit(main())
