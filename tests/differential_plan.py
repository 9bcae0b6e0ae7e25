#!/usr/bin/env python3
"""differential_plan.py [CASES] [FIRST_SEED] [DRIVER]

The simulator against check_schedule.py of the reference data (TL_SHARED, else ../shared), which knows nothing of it:
random graphs and schedules from plan_driver.c, valid and broken, all kinds of steps. Verdict, broken step, peak, host
peak, cost, compute cost and base cost must agree; with offsets, the arena is replayed here from the rules in the header
alone: numbers of allocations, overlaps, alignment, high-water mark. A plan with micro-batch slots is replayed on as many
disjoint copies of the graph, a step of slot s on copy s, which is what slots must amount to. The lifetimes of a valid plan
must be those that the checker derives, and the places that the library gives them must pass it. DRIVER: built with $CC (cc) where it is not given.
Exit status 0 all agree, 1 not; without reference data one line SKIPPED and 0.
"""
import copy, io, os, re, subprocess, sys, tempfile, time, types

HERE = os.path.dirname(os.path.abspath(__file__))

def load_checker():
    root = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
    path = os.path.join(root, 'tools', 'check_schedule.py')
    if not os.path.exists(path):
        print('SKIPPED differential_plan: no reference data (tools/check_schedule.py)')
        sys.exit(0)
    # The checker knows no entry: its tensors are HERE at the start, in its list of allocations too, and a node that is
    # there with all its outputs has run.
    source = open(path).read()
    for old, new in ("HERE if source[t[0]] else ABSENT for t in size", "HERE if source[t[0]] or t in entry else ABSENT for t in size"), \
                    ("    t_now = t_link = 0.0", "    for t in entry: ledger.open('output', t, size[t], 0)\n    t_now = t_link = 0.0"), \
                    ("ran = [False] * N;", "ran = [False] * N; enters = [all((n.id, k) in entry for k in range(len(n.out))) for n in nodes];"), \
                    ("need(ran[v], 'forward never ran')", "need(ran[v] or enters[v], 'forward never ran')"), \
                    ("any_order=False, ledger=None", "any_order=False, ledger=None, entry=()"):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    checker = types.ModuleType('check_schedule')
    exec(compile(source, path, 'exec'), checker.__dict__)
    return checker

class Rate:
    """Bytes per second that divide to whole nanoseconds, rounded up; 0 = no time."""
    def __init__(self, rate): self.rate = rate
    def time(self, size): return -(-size * 10**9 // self.rate) if self.rate else 0
    __rtruediv__ = __mul__ = time

def copies(nodes, slots):
    """The graph so many times side by side: node v of copy s is v + s * len(nodes)."""
    every, shift = [], lambda t, s: (t[0] + s * len(nodes), t[1])
    for s in range(slots):
        for n in nodes:
            c = copy.copy(n)
            c.id += s * len(nodes)
            c.ins = [shift(t, s) for t in n.ins]
            c.reads = {shift(t, s) for t in n.reads}
            c.cons = {v + s * len(nodes) for v in n.cons}
            every.append(c)
    return every

def unslot(words, count, slots):
    """A step of slot s on node v as a step on node v of copy s; on no node where there is no such node or slot."""
    last, _, slot = words[-1].partition('@')
    words = words[:-1] + [last]
    v, dot, j = words[1].partition('.')
    there = 0 <= int(v) < count and int(slot or 0) < slots
    words[1] = (str(int(v) + int(slot or 0) * count) if there else '999999') + dot + j
    return words

def out_of_order(nodes, steps, slots):
    """The first step that runs a backward out of the reverse order of its copy; None."""
    count = len(nodes) // slots
    order = [[n.id for n in nodes[s * count:(s + 1) * count] if n.grad] for s in range(slots)]
    for k, words in enumerate(steps):
        if words[0] != 'B' or '.' in words[1] or int(words[1]) >= len(nodes): continue
        left = order[int(words[1]) // count]
        if not left or left.pop() != int(words[1]): return k
    return None

def cut_entry(steps, nodes, slots):
    """The steps without the lines of the entry; its tensors on the copies, or None where it names what it may not."""
    entry, count, steps = [], len(nodes) // slots, list(steps)
    while steps and steps[0][0] == 'E':
        t, _, slot = steps.pop(0)[1].partition('@')
        v, k = map(int, t.split('.'))
        if not (0 <= v < count and 0 <= int(slot or 0) < slots) or nodes[v].op == 'input' or not 0 <= k < len(nodes[v].out): return steps, None
        entry.append((v + int(slot or 0) * count, k))
    return steps, entry if len(set(entry)) == len(entry) else None

def verdict(checker, nodes, steps, case, entry):
    """('ok', dict) or ('broken', step)"""
    if entry is None: return 'broken', 0
    inference, any_order, link, latency, codec = case[1:6]
    late = None if any_order or case[7] == 1 else out_of_order(nodes, steps, case[7])
    any_order = any_order or case[7] > 1
    if late is not None: steps = steps[:late]
    try:
        result = checker.replay(nodes, steps, bool(inference), Rate(link), latency if link else 0, Rate(codec), bool(any_order), entry=entry)
        return ('ok', result) if late is None else ('broken', late)
    except ValueError as e:
        text = str(e)
        at = re.match(r'step (\d+) \(', text)
        if at: return 'broken', int(at.group(1))
        if text.startswith('unknown codec'): return 'broken', next(k for k, s in enumerate(steps) if s[0] == 'C' and s[2] == 'none')
        assert text.startswith(('result', 'node')), text
        return 'broken', len(steps) if late is None else late

def place(checker, nodes, steps, offsets, align, entry):
    """Replays the allocations of a valid schedule. ('ok', arena, count, end bytes) or ('broken', step)"""
    live, state, host, grad, saved = {}, {}, set(), set(), set()
    number = arena = 0
    class Broken(Exception): pass
    def alloc(key, size):
        nonlocal number, arena
        if not size: return
        if offsets is not None:
            if number >= len(offsets): raise Broken
            at = offsets[number]
            if at % align or any(at < o + s and o < at + size for o, s in live.values()): raise Broken
            arena = max(arena, -(-(at + size) // align) * align)
        else: at = 0
        number += 1
        live[key] = (at, size)
    def free(key): live.pop(key, None)
    k = 0
    try:
        for n in nodes:
            for j, size in enumerate(n.out):
                state[n.id, j] = 'resident' if n.op == 'input' else 'absent'
                if n.op == 'input': alloc((n.id, j), size)
        for t in entry: state[t] = 'resident'; alloc(t, nodes[t[0]].out[t[1]])
        for k, words in enumerate(steps):
            kind = words[0]
            v, _, j = words[1].partition('.')
            v = int(v); n = nodes[v]; outs = [(v, i) for i in range(len(n.out))]
            size = lambda t: nodes[t[0]].out[t[1]]
            act = lambda *states: [(v, int(j))] if j else [t for t in outs if state[t] in states]
            if kind in ('F', 'I', 'S'):
                missing = [t for t in outs if state[t] == 'absent']
                again = [t for t in outs if t not in missing] if missing else []
                if kind == 'I':
                    src = n.ins[n.inplace]
                    state[src] = 'absent'; state[v, 0] = 'resident'; missing.remove((v, 0))
                    if src in live: live[v, 0] = live.pop(src)
                for t in missing: alloc(t, size(t)); state[t] = 'resident'
                for t in again: alloc(('again', t), size(t))
                if kind == 'S': alloc(('saved', v), n.saved); saved.add(v)
                alloc('work', n.fwork)
                for t in again: free(('again', t))
                free('work')
            elif kind == 'B':
                for t in outs + n.ins:
                    if nodes[t[0]].grad and t not in grad: grad.add(t); alloc(('grad', t), size(t))
                alloc('work', n.bwork); free('work')
                for t in outs: grad.discard(t); free(('grad', t))
                saved.discard(v); free(('saved', v))
            elif kind == 'D':
                for t in act('resident', 'packed'): free(t); free(('packed', t)); state[t] = 'absent'
            elif kind == 'DS': saved.discard(v); free(('saved', v))
            elif kind == 'O':
                for t in act('resident'): state[t] = 'leaving'
            elif kind == 'L':
                for t in act('absent'): alloc(t, size(t)); state[t] = 'coming'
            elif kind == 'W':
                for t in act('leaving', 'coming'):
                    if state[t] == 'leaving': free(t); state[t] = 'absent'
                    else: state[t] = 'resident'
            elif kind == 'C':
                for t in act('resident'): alloc(('packed', t), checker.codec_bytes(words[2], size(t))); free(t); state[t] = 'packed'
            elif kind == 'X':
                for t in act('packed'): alloc(t, size(t)); free(('packed', t)); state[t] = 'resident'
        k = len(steps)
        if offsets is not None and number != len(offsets): raise Broken
    except Broken:
        return 'broken', k
    return 'ok', arena, number, sum(s for _, s in live.values())

def cases(lines):
    for line in lines:
        assert line.startswith('case '), line
        case = [int(w) for w in line.split()[1:]]
        graph, steps = [], []
        for line in lines:
            if line == 'steps\n': break
            graph.append(line)
        for line in lines:
            if line.startswith('offsets'): break
            steps.append(line.split())
        offsets = [int(w) for w in line.split()[1:]] or None
        result = next(lines).split()
        head = [int(w) for w in next(lines).split()[1:]] if result[0] == 'ok' else None
        lives = [next(lines).split() for _ in range(head[5])] if head else None
        yield case, ''.join(graph), steps, offsets, result, head, lives

LIFE = ('kind', 'node', 'index', 'occurrence', 'bytes', 'first', 'end', 'offset', 'slot')

def wrong_places(checker, nodes, steps, case, head, lives, entry):
    """None, or what is wrong with the lifetimes and places of a valid plan."""
    ledger = checker.Ledger()
    checker.replay(nodes, steps, bool(case[1]), any_order=bool(case[2]) or case[7] > 1, ledger=ledger, entry=entry)
    rows = [dict(zip(LIFE, life)) for life in lives]
    for row in rows: row['node'] = str(int(row['node']) + int(row['slot']) * (len(nodes) // case[7]))
    want = sorted(tuple(str(x) for x in a[1:8]) for a in ledger.all)
    have = sorted(tuple(row[name] for name in LIFE[:7]) for row in rows)
    if want != have: return 'lifetimes: ' + str(sorted(set(want) ^ set(have))[:4])
    align = case[6] or 1
    for row in rows: row['tier'] = 'host' if row['kind'] == 'host' else 'device'; row['bank'] = '0'
    try: banks = checker.check_places(ledger.all, rows, align)
    except ValueError as e: return 'places: %s' % e
    for tier, arena, bound in ('device', head[0], head[1]), ('host', head[2], head[3]):
        high = -(-banks.get((tier, '0'), 0) // align) * align
        if high != arena: return '%s arena: %d, the checker finds %d' % (tier, arena, high)
        if bound > arena: return '%s bound: %d of %d' % (tier, bound, arena)
    if head[4] != (head[1] == head[0] and head[3] == head[2]): return 'proven %d of %s' % (head[4], head[:4])
    return None

def first_difference(checker, case, graph, steps, offsets, result, head, lives):
    checker.open = lambda path: io.StringIO(path)
    one = checker.load(graph)
    nodes = copies(one, case[7])
    steps, entry = cut_entry(steps, nodes, case[7])
    steps = [unslot(words, len(one), case[7]) for words in steps]
    want = verdict(checker, nodes, steps, case, entry)
    broken = want[1] if want[0] == 'broken' else None
    # A broken offset is found at its step, so it may come before a broken rule.
    placed = place(checker, nodes, steps if broken is None else steps[:broken], offsets, case[6] or 1, entry or [])
    if placed[0] == 'broken' and (broken is None or placed[1] < broken): broken = placed[1]
    if broken is not None:
        return None if result[0] == 'broken' and int(result[1]) == broken else ('broken %d' % broken)
    r = want[1]
    figures = [r['peak'], placed[1], r['host_peak'], int(r['cost']), r['compute'], r['base'], placed[3], placed[2]]
    if result != ['ok'] + [str(f) for f in figures]: return 'ok ' + ' '.join(map(str, figures))
    return wrong_places(checker, nodes, steps, case, head, lives, entry)

def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    checker = load_checker()
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        driver = sys.argv[3] if len(sys.argv) > 3 else os.path.join(folder, 'plan_driver')
        if len(sys.argv) <= 3:
            subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-O1', '-o', driver, os.path.join(HERE, 'plan_driver.c')], check=True)
        run = subprocess.Popen([driver, str(seed), str(count)], stdout=subprocess.PIPE, text=True)
        seen = valid = placed = proven = tight = slotted = entered = 0
        kinds = {}
        for case, graph, steps, offsets, result, head, lives in cases(iter(run.stdout)):
            difference = first_difference(checker, case, graph, steps, offsets, result, head, lives)
            if difference:
                print('DIFFERENT seed %d: checker says %s, library %s' % (case[0], difference, ' '.join(result)))
                print(graph + '\n'.join('%4d  %s' % (k, ' '.join(s)) for k, s in enumerate(steps)))
                return 1
            seen += 1
            valid += result[0] == 'ok'
            placed += result[0] == 'ok' and offsets is not None
            slotted += result[0] == 'ok' and case[7] > 1
            entered += result[0] == 'ok' and bool(steps) and steps[0][0] == 'E'
            proven += result[0] == 'ok' and head[4]
            tight += result[0] == 'ok' and head[0] == int(result[1])
            for s in steps if result[0] == 'ok' else steps[:int(result[1]) + 1]: kinds[s[0]] = kinds.get(s[0], 0) + 1
        if run.wait() or seen != count:
            print('plan_driver ended early: %d of %d cases' % (seen, count))
            return 1
    print('differential_plan: %d cases agree (%d valid, %d of them with offsets, %d with slots, %d with an entry, %d broken), %.1f s; places of %d of the valid ones '
          'are proven least, %d take their live peak; steps replayed: %s' %
          (seen, valid, placed, slotted, entered, seen - valid, time.time() - start, proven, tight,
           ' '.join('%s %d' % k for k in sorted(kinds.items()))))
    return 0

if __name__ == '__main__': sys.exit(main())
