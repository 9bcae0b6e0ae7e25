#!/usr/bin/env python3
"""differential_once.py [CASES] [FIRST_SEED] [DRIVER]

The planner against brute_force.py of the reference data (TL_SHARED, else ../shared), which knows nothing of it: random
graphs of at most 6 nodes, of which some may run once only, from once_driver.c. At each budget the cost is that of the
cheapest schedule there is, or there is none; the least budget that is named is the least there is; and the bound of a
search that was cut short is above neither. DRIVER: built with $CC (cc) where it is not given.
Exit status 0 all agree, 1 not; without reference data one line SKIPPED and 0.
"""
import importlib.util, io, os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
MOST_BITS = 17      # of a state of the brute force: it takes seconds beyond

def load_brute_force():
    tools = os.path.join(ROOT, 'tools')
    path = os.path.join(tools, 'brute_force.py')
    if not os.path.exists(path):
        print('SKIPPED differential_once: no reference data (tools/brute_force.py)')
        sys.exit(0)
    sys.dont_write_bytecode = True
    sys.path.insert(0, tools)
    spec = importlib.util.spec_from_file_location('brute_force', path)
    brute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(brute)
    return brute, sys.modules['check_schedule']

def cases(lines):
    """(seed, inference, graph text, rows) of each case."""
    for line in lines:
        _, seed, inference = line.split()
        graph, rows = [], []
        for line in lines:
            if line == 'budgets\n': break
            graph.append(line)
        for line in lines:
            if line == 'end\n': break
            rows.append(line.split())
        yield int(seed), inference == '1', ''.join(graph), rows

def first_difference(points, rows):
    """None, or what is wrong. points: (peak, cost) of the trade-off by rising peak."""
    least = points[0][0]
    for budget, verdict, *figures in rows:
        first, second, proven, early = map(int, figures)
        fitting = [cost for peak, cost in points if peak <= int(budget)]
        if (verdict == 'ok') != bool(fitting): return 'at %s bytes: %s, the least budget is %d' % (budget, verdict, least)
        if not proven: return 'at %s bytes: not proven' % budget
        if verdict == 'ok' and (first != fitting[-1] or second > int(budget)):
            return 'at %s bytes: cost %d, peak %d, the optimum is %d' % (budget, first, second, fitting[-1])
        if verdict == 'ok' and early > fitting[-1]: return 'at %s bytes: bound %d, the optimum is %d' % (budget, early, fitting[-1])
        if verdict != 'ok' and not first == second == least:
            return 'at %s bytes: least budget %d, bound %d, it is %d' % (budget, first, second, least)
        if verdict != 'ok' and early > least: return 'at %s bytes: bound budget %d, the least is %d' % (budget, early, least)
    return None

def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    brute, checker = load_brute_force()
    checker.open = lambda path: io.StringIO(path)
    start = time.time()
    seen = large = marked = fits = refused = dearer = 0
    with tempfile.TemporaryDirectory() as folder:
        driver = sys.argv[3] if len(sys.argv) > 3 else os.path.join(folder, 'once_driver')
        if len(sys.argv) <= 3:
            subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-O1', '-w', '-o', driver, os.path.join(HERE, 'once_driver.c')], check=True)
        run = subprocess.Popen([driver, str(seed), '1000000000'], stdout=subprocess.PIPE, text=True)
        for number, inference, graph, rows in cases(iter(run.stdout)):
            nodes = checker.load(graph)
            once = any(n.once for n in nodes)
            if brute.Problem(nodes, inference).shift > MOST_BITS: large += 1; continue
            points = [(peak, cost) for peak, cost, _ in brute.trade_off(nodes, inference)]
            difference = first_difference(points, rows)
            if difference:
                print('DIFFERENT seed %d%s: %s\n%s' % (number, ', inference' if inference else '', difference, graph), end='')
                run.kill()
                return 1
            for n in nodes: n.once = False
            free = brute.trade_off(nodes, inference) if once and seen % 10 == 0 else []
            dearer += bool(free) and [(peak, cost) for peak, cost, _ in free] != points
            seen += 1
            marked += once
            fits += sum(row[1] == 'ok' for row in rows)
            refused += sum(row[1] != 'ok' for row in rows)
            if seen == count: break
        run.kill()
        if seen < count:
            print('once_driver ended early: %d of %d cases' % (seen, count))
            return 1
    print('differential_once: %d graphs agree (%d with nodes that run once only, %d larger ones left out), %d budgets fit, %d do not, %.1f s; '
          'of every tenth, %d have another trade-off for that' % (seen, marked, large, fits, refused, time.time() - start, dearer))
    return 0 if marked * 2 > count and refused and dearer else 1

if __name__ == '__main__': sys.exit(main())
