#!/usr/bin/env python3
"""replay_states.py [CASES] [FIRST_SEED] [DRIVER]

Whole training steps of graphs that own their weights, replayed here from what the header and the guide say of steps, states and
pieces; nothing of the library is used. states_driver.c makes random graphs with states, trained, held, frozen, in pieces, with inputs
that die, and schedules of all kinds of steps, valid and broken. Held against what the simulator says of them:

    verdict   every rule of steps; weights and moments there throughout; an update once, behind every backward that contributes, and no
              forward that reads its weight behind it; of several broken rules the first
    bytes     peak, bytes of each step, those at the end, host peak; each lifetime: a gradient of a weight from its first contribution to
              its update, none where its state holds it or is trained in pieces; several steps in flight
    places    with offsets: alignment, overlaps, high-water mark, numbers of allocations
    cost      of the pass and of its kernels, with copies on one channel, two or none; counts of steps
    pieces    the graph that is cut against the one before: costs, scratch; calls of tl_replay_plan: each row once, its gradient and then
              its update, gradient and scratch apart and within the scratch of the reader's backward

DRIVER: built with $CC (cc) where it is not given. Exit status 0 all agree, 1 not.
"""
import collections, os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
UPDATED = ('trained', 'hold')                     # kinds of states whose backward, the update, is a step
STATES = UPDATED + ('frozen', 'stat', 'pieces')
ABSENT, RESIDENT, LEAVING, COMING, PACKED = range(5)

# -- graphs --

class Node:
    """kind: node, input, dies, or that of the state. Tensors are (node, output)."""

def tensor(text):
    v, _, k = text.partition('.')
    return int(v), int(k or 0)

def numbers(text): return [int(x) for x in text.split(',')] if text else []

def read_node(words, nodes):
    n, said = Node(), dict(w.partition('=')[::2] for w in words[4:])
    n.id, n.name, n.op, n.said = int(words[1]), words[2], words[3], said
    assert n.id == len(nodes)
    if words[0] == 'state':
        n.kind = next((k for k in ('hold', 'frozen', 'stat') if k in said), 'pieces' if 'piece' in said else 'trained')
        n.sizes = numbers(said['w']) + numbers(said.get('m')) + (numbers(said['w']) if n.kind == 'hold' else [])
        n.bwd, n.bwork = int(said.get('upd', 0)), int(said.get('uwork', 0))
    else:
        n.kind = 'node' if n.op != 'input' else 'dies' if 'dies' in said else 'input'
        n.sizes = numbers(said['out'])
        n.bwd, n.bwork = int(said['bwd']), int(said.get('bwork', 0))
    n.fwd, n.saved, n.fwork = (int(said.get(k, 0)) for k in ('fwd', 'saved', 'fwork'))
    n.swork = int(said.get('swork', n.fwork))
    n.outs = [(n.id, k) for k in range(len(n.sizes))]
    n.ins = [] if said.get('in', '-') == '-' else [tensor(t) for t in said['in'].split(',')]
    n.grad = n.kind in UPDATED or (n.kind == 'node' and said.get('grad') != 'no')
    n.keep, n.once = 'keep' in said, 'once' in said
    n.inplace = int(said['inplace']) if 'inplace' in said else None
    n.reads = set()
    for need in said.get('needs', 'none').split(','):
        if need != 'none':
            of, index = (n.ins, need[2:]) if need.startswith('in') else (n.outs, need[3:])
            n.reads |= set(of) if not index else {of[int(index)]}
    n.readers = set()
    for t in n.ins: nodes[t[0]].readers.add(n.id)
    return n

def read_graph(lines):
    nodes = []
    for line in lines:
        words = line.split()
        if words[0] in ('node', 'state'): nodes.append(read_node(words, nodes))
        if words[0] == 'end': assert int(words[1]) == len(nodes)
    return nodes

# -- one pass --

class Broken(Exception): pass

def need(fact, why):
    if not fact: raise Broken(why)

class Link:
    """When copies end. Rates are bytes a second, 0 = no time; channels: 0, 1 = one, 2 = one each way, -1 = none."""
    def __init__(self, said):
        self.latency, self.channels = said['latency'], said['channels']
        self.rates, self.free = {'O': said['down'], 'L': said['up'] or said['down']}, {'O': 0, 'L': 0}
    def copy(self, kind, size, now):
        takes = self.latency + -(-size * 10**9 // self.rates[kind]) if self.rates[kind] else 0
        if self.channels < 0: return now + takes
        way = kind if self.channels == 2 else 'O'
        self.free[way] = max(self.free[way], now) + takes
        return self.free[way]

class Pass:
    """The replay of a plan. Raises Broken; self.step is the broken step then."""
    def __init__(self, nodes, said, steps, entry, offsets, flight):
        self.nodes, self.said, self.steps, self.entry, self.offsets, self.flight = nodes, said, steps, entry, offsets, flight
        self.step, self.end = 0, len(steps)
        self.state = {t: ABSENT for n in nodes for t in n.outs}
        self.size = {t: b for n in nodes for t, b in zip(n.outs, n.sizes)}
        self.packed, self.ready, self.on_host, self.ran, self.done = {}, {}, set(), set(), set()
        self.calls = {}                                       # node -> (what its call under way reads, adds to, whether it is a backward)
        self.lives, self.live, self.times = [], {}, collections.Counter()
        self.number = self.host_number = self.now = self.high = self.peak = self.host = self.host_peak = self.arena = 0
        self.places, self.held_back, self.bytes, self.peak_step = {}, [], [], -1
        self.clock = self.cost = self.compute = 0
        self.link, self.count = Link(said), collections.Counter()
        self.left = [n.id for n in nodes if n.grad and n.kind == 'node']      # backwards, in order from its end

    # allocations

    def make(self, use, t, size, over=None):
        key = (use,) + t
        life = [use, t[0], t[1], self.times[key], size, self.step, None, -1, -1, self.end]
        self.times[key] += 1
        self.live[key] = life
        if not size: return life
        if use == 'host':
            life[7] = self.host_number
            self.host_number += 1
            self.host += size
            self.host_peak = max(self.host_peak, self.host)
        elif over is not None:
            life[7], life[8] = over[7], self.lives.index(over)
        else:
            life[7] = self.number
            self.number += 1
            self.now += size
            self.high = max(self.high, self.now)
            if self.offsets is not None: self.place(life[7], size)
        self.lives.append(life)
        return life

    def place(self, number, size):
        need(number < len(self.offsets), 'fewer offsets than allocations')
        at, align = self.offsets[number], self.said['align'] or 1
        need(at % align == 0, 'offset is not aligned')
        need(not any(at < end and begin < at + size for begin, end in self.places.values()), 'two allocations overlap')
        self.places[number] = at, at + size
        self.arena = max(self.arena, -(-(at + size) // align) * align)

    def forget(self, life):
        if life[0] == 'host': self.host -= life[4]
        else:
            self.now -= life[4]
            self.places.pop(life[7], None)

    def free(self, use, t, late=0):
        """late: it still lives in this step."""
        life = self.live.pop((use,) + t)
        life[6], life[9] = self.step + late, self.step
        if not life[4]: return
        if self.flight == 1: return self.forget(life)
        life[6] = min(self.step + self.flight, self.end)
        self.held_back.append((self.step + self.flight, life))

    # rules

    def here(self, t): return self.state[t] in (RESIDENT, LEAVING)

    def is_read(self, t): return any(t in reads for reads, _, _ in self.calls.values())

    def acted(self, n, k, *states):
        """The tensors that a step acts on: one, or all that are in these states."""
        if k is not None:
            need(0 <= k < len(n.sizes), 'no such output')
            need(self.state[n.id, k] in states, 'is in no state to act on')
            return [(n.id, k)]
        ts = [t for t in n.outs if self.state[t] in states]
        need(ts, 'no output is in a state to act on')
        return ts

    def update_ran(self, p, reader):
        """Whether the weight of p, or a part of it, is that of the next pass."""
        return p.kind in STATES and p.id in self.done or (p.kind == 'pieces' and reader.id in self.done)

    def forward(self, kind, n, begins):
        need(not (n.once and n.id in self.ran), 'may run once only')
        for t in n.ins:
            need(self.here(t), 'input is not resident')
            need(not self.update_ran(self.nodes[t[0]], n), 'reads a weight behind its update')
        need(not any(self.state[t] in (COMING, PACKED) for t in n.outs), 'output is coming or compressed')
        missing = [t for t in n.outs if self.state[t] == ABSENT]
        if kind == 'S':
            need(n.saved and n.grad and ('saved', n.id, 0) not in self.live, 'saves nothing, or again')
        else:
            need(missing, 'all outputs are resident')
        second = [t for t in n.outs if t not in missing] if missing else []
        if begins:
            need(kind == 'F' and not n.fwork and not n.saved and not second, 'cannot begin')
            self.calls[n.id] = set(n.ins), set(), False
        over = None
        if kind == 'I':
            need(n.inplace is not None, 'not in place')
            source = n.ins[n.inplace]
            need(self.state[source] == RESIDENT and not self.is_read(source), 'the overwritten input is copied or read')
            need(n.ins.count(source) == 1 and n.outs[0] in missing, 'reads it twice, or output is resident')
            self.state[source] = ABSENT
            over = self.live.pop(('output',) + source)
            over[6] = over[9] = self.step
        for t in missing:
            self.state[t] = COMING if begins else RESIDENT
            self.make('output', t, self.size[t], over if t == n.outs[0] else None)
        for t in second: self.make('second', t, self.size[t])
        if kind == 'S': self.make('saved', (n.id, 0), n.saved)
        self.make('scratch', (n.id, 0), n.swork if kind == 'S' else n.fwork)
        for t in second: self.free('second', t, 1)
        self.free('scratch', (n.id, 0), 1)
        self.count['forwards'] += 1
        self.count['again'] += n.id in self.ran
        self.ran.add(n.id)
        self.run(n.fwd)

    def backward(self, n, begins):
        need(not self.said['inference'] and n.grad and n.id not in self.done, 'no backward, or again')
        is_state = n.kind in UPDATED
        if not is_state:
            need(n.id in self.ran or all(t in self.entry for t in n.outs), 'forward never ran')
            need(self.said['any_order'] or self.left[-1] == n.id, 'out of order')
        for c in n.readers: need(not self.nodes[c].grad or (c in self.done and not (c in self.calls and self.calls[c][2])), 'a reader has not run backward')
        for t in n.reads: need(self.here(t), 'needs a tensor')
        need(not n.saved or ('saved', n.id, 0) in self.live, 'needs its saved bytes')
        need(not is_state or not self.is_read(n.outs[0]), 'a call under way reads the weight')
        # Moments have no gradient; that which a state holds is there already, that of a state in pieces never.
        own = n.outs if not is_state else n.outs[:1] if n.kind == 'trained' else []
        into = [t for t in n.ins if self.nodes[t[0]].grad and self.nodes[t[0]].kind != 'hold']
        adds = {t for t in n.ins if self.nodes[t[0]].grad}
        for _, others, _ in self.calls.values(): need(not adds & others and not set(n.outs) & others, 'a call under way adds to the same')
        if begins:
            need(not n.bwork and not n.saved and not is_state, 'cannot begin')
            self.calls[n.id] = n.reads, adds, True
        for t in own + into:
            if ('gradient',) + t not in self.live: self.make('gradient', t, self.size[t])
        self.make('scratch', (n.id, 0), n.bwork)
        self.free('scratch', (n.id, 0), 1)
        for t in own if not begins else []: self.free('gradient', t, 1)
        if ('saved', n.id, 0) in self.live: self.free('saved', (n.id, 0), 1)
        self.done.add(n.id)
        if not is_state: self.left.remove(n.id)
        self.count['backwards'] += 1
        self.run(n.bwd)

    def run(self, cost):
        self.clock += cost
        self.compute += cost

    def leave_alone(self, t): need(not self.is_read(t), 'a call under way reads it')

    def drop(self, n, k):
        for t in self.acted(n, k, RESIDENT, PACKED):
            self.leave_alone(t)
            self.free('compressed' if self.state[t] == PACKED else 'output', t)
            self.state[t] = ABSENT

    def drop_saved(self, n, _):
        need(('saved', n.id, 0) in self.live, 'has no saved bytes')
        self.free('saved', (n.id, 0))

    def spill(self, n, k):
        for t in self.acted(n, k, RESIDENT):
            self.leave_alone(t)
            need(t not in self.on_host, 'the host has it')
            self.on_host.add(t)
            self.make('host', t, self.size[t])
            self.copy('O', t, LEAVING)

    def fetch(self, n, k):
        for t in self.acted(n, k, ABSENT):
            need(t in self.on_host, 'not on the host')
            self.make('output', t, self.size[t])
            self.copy('L', t, COMING)

    def copy(self, kind, t, state):
        self.state[t], self.ready[t] = state, self.link.copy(kind, self.size[t], self.clock)
        if self.link.channels < 0: self.clock = self.ready[t]
        self.count['copies'] += 1

    def wait(self, n, k):
        if n.id in self.calls:
            need(k is None, 'ends a call of the whole node')
            is_backward = self.calls.pop(n.id)[2]
            for t in n.outs:
                if is_backward: self.free('gradient', t, 1)
                else: self.state[t] = RESIDENT
            return
        for t in self.acted(n, k, LEAVING, COMING):
            self.clock = max(self.clock, self.ready[t])
            if self.state[t] == COMING:
                self.state[t] = RESIDENT
                continue
            self.leave_alone(t)
            self.free('output', t)
            self.state[t] = ABSENT

    def drop_host(self, n, k):
        if k is not None: need(0 <= k < len(n.sizes), 'no such output')
        ts = [t for t in (n.outs if k is None else [(n.id, k)]) if t in self.on_host]
        need(ts or k is None, 'not on the host')
        for t in ts:
            need(self.state[t] not in (LEAVING, COMING), 'a copy is under way')
            self.on_host.remove(t)
            self.free('host', t)

    def compress(self, n, k, codec):
        need(codec in ('f16', 'bf16', 'q8'), 'unknown codec')
        for t in self.acted(n, k, RESIDENT):
            self.leave_alone(t)
            floats = -(-self.size[t] // 4)
            self.make('compressed', t, 2 * floats if codec != 'q8' else floats + 4 * -(-floats // 32))
            self.free('output', t, 1)
            self.convert(t, PACKED)

    def expand(self, n, k):
        for t in self.acted(n, k, PACKED):
            self.make('output', t, self.size[t])
            self.free('compressed', t, 1)
            self.convert(t, RESIDENT)

    def convert(self, t, state):
        self.state[t] = state
        self.clock += -(-self.size[t] * 10**9 // self.said['codec']) if self.said['codec'] else 0
        self.count['codecs'] += 1

    def one(self, words):
        kind, begins = words[0], words[-1] == 'begin'
        last, _, slot = words[1].partition('@')
        v, dot, k = last.partition('.')
        need(0 <= int(v) < len(self.nodes) and not int(slot or 0), 'no such node or slot')
        n, k = self.nodes[int(v)], int(k) if dot else None
        need(n.kind != 'input', 'an input takes no step')
        need(n.kind not in STATES or kind == 'B', 'a state takes no step but its update')
        need(n.kind != 'dies' or kind in ('D', 'O', 'L', 'W', 'DH'), 'an input that dies is freed and copied alone')
        need(n.id not in self.calls or kind == 'W', 'a call of it is under way')
        need(k is None or kind not in ('F', 'I', 'S', 'B', 'DS'), 'acts on a node')
        need(not begins or self.flight == 1, 'begins with several steps in flight')
        if kind in ('F', 'I', 'S'): self.forward(kind, n, begins)
        elif kind == 'B': self.backward(n, begins)
        elif kind == 'C': self.compress(n, k, words[2])
        else:
            does = {'D': self.drop, 'DS': self.drop_saved, 'O': self.spill, 'L': self.fetch, 'W': self.wait, 'DH': self.drop_host, 'X': self.expand}
            need(kind in does, 'no such step')
            does[kind](n, k)
        if kind in ('F', 'I', 'S', 'B', 'W', 'C', 'X') or self.link.channels < 0: self.cost = self.clock

    def start(self):
        said = self.said
        need(said['slots'] <= 1 or not any(n.kind in STATES for n in self.nodes), 'states have one slot')
        need(said['repeats'] <= 1 or said['inference'] or not any(n.kind in ('trained', 'pieces') for n in self.nodes), 'repetitions need gradients that are held')
        for n in self.nodes:
            for t in n.outs if n.kind != 'node' else []:
                self.make('output', t, self.size[t])[0] = 'state' if n.kind in STATES else 'input'
                self.state[t] = RESIDENT
        for t in self.entry:
            need(t in self.size and self.nodes[t[0]].kind == 'node' and self.state[t] == ABSENT, 'entry')
            self.make('output', t, self.size[t]); self.state[t] = RESIDENT
        self.peak = self.now

    def finish(self):
        need(not self.calls, 'a call is under way')
        results = [n for n in self.nodes if n.keep and n.kind != 'input']
        if self.said['inference'] and not any(n.keep for n in self.nodes): results = [n for n in self.nodes if n.kind == 'node' and not n.readers]
        if not self.said['inference']: need(all(n.id in self.done for n in self.nodes if n.grad), 'a node never ran backward')
        for n in results: need(all(self.here(t) for t in n.outs), 'a result is not resident')
        need(self.offsets is None or self.number == len(self.offsets), 'more offsets than allocations')
        for life in self.lives:
            if life[6] is None: life[6] = self.end

    def replay(self):
        self.start()
        for self.step, words in enumerate(self.steps):
            while self.held_back and self.held_back[0][0] <= self.step: self.forget(self.held_back.pop(0)[1])
            self.high = self.now
            self.one(words)
            self.bytes.append(self.high)
            if self.high > self.peak: self.peak, self.peak_step = self.high, self.step
        self.step = self.end
        self.finish()

    def report(self):
        grads = 0 if self.said['inference'] else sum(n.bwd for n in self.nodes if n.grad)
        left = [sum(life[4] for key, life in self.live.items() if (key[0] == 'host') == on_host) for on_host in (0, 1)]
        return dict(self.count, peak=self.peak, arena=self.arena, host_peak=self.host_peak, end=left[0], end_host=left[1], cost=self.cost,
                    compute=self.compute, base=grads + sum(n.fwd for n in self.nodes), allocations=self.number,
                    host_allocations=self.host_number, peak_step=self.peak_step)

# -- gradients in pieces --

def rows_of(p): return int(p.said['wrows'])
def reader_of(p, nodes): return nodes[min(p.readers)] if p.readers else None
def cut_by(p, align, most):
    """Rows of a piece; all of them where none smaller is aligned."""
    rows, sizes = rows_of(p), [b // rows_of(p) for b in p.sizes]
    unit = next(u for u in range(1, rows + 1) if u == rows or all(b * u % align == 0 for b in sizes))
    return min(rows, max(unit, most // sizes[0] // unit * unit))

def room(reader, p, piece, align):
    """bwork of a reader with a state in pieces: the scratch of both kernels, from a multiple of 16 and of align on the piece."""
    return -(-max(reader.bwork, p.bwork) // max(16, align)) * max(16, align) + piece

def wrong_cut(case, nodes):
    """None, or how the graph differs from that which the one before it becomes."""
    whole, (most, align, call_cost) = read_graph(case.whole), case.cut
    cut, parts = collections.defaultdict(list), {}
    for p, now in zip(whole, nodes):
        reader = reader_of(p, whole) if p.kind in STATES else None
        may = p.kind == 'trained' and 'wrows' in p.said and p.sizes[0] > most and reader and reader.grad and reader.kind == 'node'
        may = may and 'takes_blocks' not in reader.said and sum(t[0] == p.id for n in whole for t in n.ins) == 1
        by = cut_by(p, align or 1, most) if may else 0
        if may and by < rows_of(p): parts[p.id] = by
        if now.kind != 'pieces': continue
        if parts.get(p.id) != int(now.said['piece']): return 'state %d: %s rows a piece' % (p.id, parts.get(p.id))
        cut[reader.id].append(p)
    piece = lambda p: p.sizes[0] // rows_of(p) * parts[p.id]
    for n, now in zip(whole, nodes):
        if now.sizes != n.sizes or now.ins != n.ins or now.reads != n.reads or now.fwd != n.fwd or now.saved != n.saved: return 'node %d' % n.id
        here = cut[n.id]
        bwd = n.bwd + sum(p.bwd + (2 * -(-rows_of(p) // parts[p.id]) - 1) * call_cost for p in here)
        bwork = max([n.bwork] + [room(n, p, piece(p), align) for p in here])
        if now.kind != 'pieces' and (now.bwd, now.bwork) != (bwd, bwork): return 'node %d: bwd %d bwork %d' % (n.id, bwd, bwork)
        for p in (whole[i] for i in parts if n.id in whole[i].readers):
            if (room(n, p, piece(p), align) < n.bwork + p.sizes[0]) != (p in here): return 'state %d: %d bytes' % (p.id, room(n, p, piece(p), align))
    return None

def operands(words):
    """name -> [(use, tensor, first byte, end)]"""
    got = collections.defaultdict(list)
    for i in range(0, len(words), 6):
        v, k, at, size = map(int, words[i + 2:i + 6])
        got[words[i]].append((words[i + 1], (v, k), at, at + size))
    return got

def wrong_calls(case, nodes, steps):
    """None, or what is wrong with the calls for pieces."""
    whole, calls = read_graph(case.whole), list(case.pieces)
    for step, words in enumerate(steps):
        v = int(words[1].split('.')[0])
        states = [nodes[t[0]] for t in nodes[v].ins if nodes[t[0]].kind == 'pieces']
        if words[0] != 'B' or not states: continue
        rest = calls.pop(0)
        if rest[:5] != [str(step), str(v), '0', '0', '0']: return 'step %d: begins with %s' % (step, rest[:5])
        got = operands(rest[5:])
        want = [t for t in nodes[v].ins if nodes[t[0]].grad and (nodes[t[0]].kind == 'hold' or nodes[t[0]].sizes[t[1]])]
        want = [(t[0], len(nodes[t[0]].sizes) - 1) if nodes[t[0]].kind == 'hold' else t for t in want if nodes[t[0]].sizes[t[1]]]
        if sorted(o[1] for o in got['din']) != sorted(want): return 'step %d: gradients %s of %s' % (step, got['din'], want)
        for p in states:
            rows, by = rows_of(p), int(p.said['piece'])
            for first in range(0, rows, by):
                count = min(by, rows - first)
                head = [str(x) for x in (first, count, rows)]
                make, update = calls.pop(0), calls.pop(0)
                if make[:5] != [str(step), str(v)] + head or update[:5] != [str(step), str(p.id)] + head: return 'step %d: %s, %s' % (step, make[:5], update[:5])
                make, update = operands(make[5:]), operands(update[5:])
                if len(make['din']) != 1 or make['din'] != update['dout']: return 'step %d: gradient %s, %s' % (step, make['din'], update['dout'])
                use, t, begin, end = make['din'][0]
                if (use, t, end - begin) != ('scratch', (v, 0), p.sizes[0] // rows * count): return 'step %d: gradient %s' % (step, make['din'])
                if end > nodes[v].bwork: return 'step %d: gradient ends at %d' % (step, end)
                for call, least in (make, whole[v].bwork), (update, whole[p.id].bwork):
                    have = sum(o[3] - o[2] for o in call['scratch'])
                    if have < least: return 'step %d: scratch %d of %d' % (step, have, least)
                    if any(o[2] < end and begin < o[3] or o[3] > nodes[v].bwork or o[:2] != (use, t) for o in call['scratch']): return 'step %d: scratch' % step
                parts = [('state', (p.id, k), b // rows * first, b // rows * (first + count)) for k, b in enumerate(p.sizes) if b]
                if update['out'] != parts: return 'step %d: updates %s' % (step, update['out'])
                if any(nodes[o[1][0]].kind == 'pieces' for o in make['in']): return 'step %d: reads a weight in pieces' % step
    return 'more calls: %s' % calls[0] if calls else None

# -- comparison --

def read_steps(lines):
    """(entry, steps in flight, steps)"""
    entry, flight, steps = [], 1, []
    for line in lines:
        words = line.split()
        if words[0] == 'K': flight = int(words[1])
        elif words[0] == 'E':
            t, _, slot = words[1].partition('@')
            entry.append(tensor(t) if not int(slot or 0) else None)
        else: steps.append(words)
    return entry, flight, steps

def first_difference(case):
    """None, or what is wrong. Counts of what was seen are in case.seen."""
    nodes = read_graph(case.graph)
    entry, flight, steps = read_steps(case.steps)
    own = Pass(nodes, case.said, steps, entry, case.offsets, flight)
    case.seen = seen = collections.Counter(n.kind for n in nodes if n.kind in STATES)
    wrong = case.whole and wrong_cut(case, nodes)
    if wrong: return 'pieces: ' + wrong
    try: own.replay()
    except Broken as e:
        seen['broken'] = 1
        return None if case.verdict[:2] == ['broken', str(own.step)] else 'broken %d: %s' % (own.step, e)
    if case.verdict[0] != 'ok': return 'valid'
    seen.update(w[0] + (' begin' if w[-1] == 'begin' else '') for w in steps)
    have = {k: int(v) for k, v in (w.split('=') for w in case.verdict[1:])}
    want = own.report()
    wrong = ['%s %d' % (k, want.get(k, 0)) for k in have if have[k] != want.get(k, 0)]
    if wrong: return ', '.join(wrong)
    if case.live != own.bytes: return 'live bytes %s' % own.bytes
    lives = [' '.join(map(str, life)) for life in own.lives]
    if lives != case.lives: return 'lifetimes %s' % sorted(set(lives) ^ set(case.lives))[:6]
    if case.whole and not any(w[-1] == 'begin' for w in steps):
        wrong = wrong_calls(case, nodes, steps)
        if wrong: return 'calls: ' + wrong
    return None

class Case: pass

def cases(lines):
    """The cases of the driver's output."""
    def until(*words):
        block = []
        for line in lines:
            if line.startswith(words): return block, line
            block.append(line)
        return block, ''
    line = next(lines, '')
    while line:
        c = Case()
        c.seed, said = line.split()[1], line.split()[2:]
        c.said = {k: int(v) for k, v in (w.split('=') for w in said)}
        c.graph, line = until('whole', 'steps')
        c.whole = None
        if line.startswith('whole'):
            c.cut = [int(w) for w in line.split()[1:]]
            c.whole, line = until('steps')
        c.steps, line = until('offsets')
        c.offsets = [int(w) for w in line.split()[1:]] or None
        c.verdict = next(lines).split()
        rest, line = until('case')
        c.live = [int(w) for w in rest[0].split()[1:]] if rest else []
        c.lives = [r[5:-1] for r in rest if r.startswith('life')]
        c.pieces = [r.split()[1:] for r in rest if r.startswith('piece')]
        yield c

def show(case):
    """A case as a graph and numbered steps."""
    entry = sum(w[0] in 'EK' for w in case.steps)
    lines = ['%5s  %s' % ('' if k < entry else k - entry, w) for k, w in enumerate(case.steps)]
    return ''.join(case.graph + (['before pieces of %s\n' % case.cut] + case.whole if case.whole else []) + lines)

def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    start, seen = time.time(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        driver = sys.argv[3] if len(sys.argv) > 3 else os.path.join(folder, 'states_driver')
        if len(sys.argv) <= 3:
            subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-O0', '-o', driver, os.path.join(HERE, 'states_driver.c')], check=True)
        run = subprocess.Popen([driver, str(seed), str(count)], stdout=subprocess.PIPE, text=True)
        for case in cases(iter(run.stdout)):
            difference = first_difference(case)
            if difference:
                print('DIFFERENT seed %s: the rules say %s; the library %s' % (case.seed, difference, ' '.join(case.verdict)))
                print(show(case))
                return 1
            seen.update(case.seen, cases=1, placed=case.verdict[0] == 'ok' and case.offsets is not None, cut=len(case.pieces))
        if run.wait() or seen['cases'] != count:
            print('states_driver ended early: %d of %d cases' % (seen['cases'], count))
            return 1
    print('replay_states: %d cases agree (%d valid, %d of them with offsets, %d broken), %.1f s; states: %s; %d calls for pieces; steps of valid '
          'plans: %s' % (count, count - seen['broken'], seen['placed'], seen['broken'], time.time() - start,
                         ', '.join('%d %s' % (seen[k], k) for k in STATES), seen['cut'],
                         ' '.join('%s %d' % (k, seen[k]) for k in sorted(seen) if k[0].isupper())))
    return 0

if __name__ == '__main__': sys.exit(main())
