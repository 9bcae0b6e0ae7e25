#!/usr/bin/env python3
"""replay_ranks.py [PROGRAM] [--random N] [--seed S] [--model FILE --plan FILE]

The plans of several ranks that `tl_plan MODEL --ranks N --json` writes, replayed here from the rules of steps in
tl_strategy.h and of ranks alone; nothing of the library is used. Each rank is replayed on the caller's tensors: a message brings
or takes one of these. Held against what the program says:

    cuts      what crosses into the next stage is received and sent, and only that; the graph of a stage is the caller's part
    steps     every rule, in each micro-batch: operands resident, drops, saved bytes, gradients, calls under way, order
    once      every backward once, in rising order of micro-batches; every message once
    bytes     peak, arena (no two that live together share bytes), sent, held, weights, micro-batches in flight, the budget
    time      all ranks together, one channel a neighbour and direction: every end, the total, the bubble; no rank waits for good

Models: small/ and some of models/ of the reference data (TL_SHARED, else ../shared) where it is there, and N random graphs (120;
SOAK=n: n times as many); 1 to 5 ranks, 1 to 6 micro-batches, both schedules, budgets from the least to that of keeping everything. Then some of
these plans are broken on purpose, and each must be found. --plan replays one JSON file. PROGRAM: build/tl_plan.
Exit status 0 all agree, 1 not.
"""
import argparse, bisect, copy, glob, json, os, random, re, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
MODELS = ['encoder2', 'mlp8', 'resnet18', 'unet', 'unit20', 'vgg16']

class Wrong(Exception): pass

def hold(fact, *what):
    if not fact: raise Wrong(' '.join(map(str, what)))

# -- graphs --

class Node:
    """key: its number in the caller's graph; ('receive', t) and ('send', t) of messages. Tensors are (node, output) of the caller's."""
    def __init__(self, key, ins=(), outs=(), sizes=(), op='', grad=True):
        self.key, self.ins, self.outs, self.sizes, self.op, self.grad = key, list(ins), list(outs), list(sizes), op, grad
        self.fwd = self.bwd = self.saved = self.fwork = self.bwork = self.swork = self.param = 0
        self.reads, self.keep, self.once, self.inplace, self.rest = set(), False, False, None, {}

def read_graph(text):
    nodes, size = [], {}
    for line in text.splitlines():
        words = line.split('#')[0].split()
        if not words or words[0] != 'node': continue
        hold(int(words[1]) == len(nodes), 'node', words[1], 'is number', len(nodes))
        said = dict(word.partition('=')[::2] for word in words[4:])
        n = Node(len(nodes), op=words[3], grad=words[3] != 'input' and said.get('grad') != 'no')
        n.name = words[2]
        n.sizes = [int(b) for b in said['out'].split(',')]
        n.outs = [(n.key, k) for k in range(len(n.sizes))]
        n.ins = [] if said['in'] == '-' else [(int(t.partition('.')[0]), int(t.partition('.')[2] or 0)) for t in said['in'].split(',')]
        for field in ('fwd', 'bwd', 'saved', 'fwork', 'bwork', 'param'): setattr(n, field, int(said.get(field, 0)))
        n.swork = int(said.get('swork', n.fwork))
        n.keep, n.once = 'keep' in said, 'once' in said
        n.inplace = int(said['inplace']) if 'inplace' in said else None
        n.rest = {word: said[word] for word in ('layer', 'unit', 'fixed', 'dynamic', 'takes_blocks') if word in said}
        for need in said['needs'].split(','):
            if need != 'none':
                of, index = (n.ins, need[2:]) if need.startswith('in') else (n.outs, need[3:])
                n.reads |= set(of) if not index else {of[int(index)]}
        nodes.append(n)
        size.update(zip(n.outs, n.sizes))
    return nodes, size

def crossing(nodes, cut):
    """The tensors that a stage which begins with node `cut` gets from the one before."""
    read = {t for n in nodes[cut:] for t in n.ins}
    return sorted(t for n in nodes[:cut] if n.op != 'input' for t in n.outs if t in read)

def stage_nodes(nodes, size, first, end, inference):
    """What the stage must be, by key."""
    stage = {n.key: n for n in nodes[first:end] if n.op != 'input'}
    for n in list(stage.values()):
        for t in n.ins:
            if nodes[t[0]].op == 'input': stage[t[0]] = nodes[t[0]]
    for t in crossing(nodes, first):
        stage['receive', t] = m = Node(('receive', t), outs=[t], sizes=[size[t]], op='receive', grad=nodes[t[0]].grad)
        m.once = True
    for t in crossing(nodes, end):
        stage['send', t] = m = Node(('send', t), ins=[t], outs=[('send', t)], sizes=[0], op='send', grad=nodes[t[0]].grad)
        m.once, m.keep = True, not inference or any(n.keep for n in nodes)
    return stage

def match_stage(rank, nodes, size, inference):
    """The caller's node or message behind each node of the stage's graph, which must be the part of the caller's graph that it is."""
    own, own_size = read_graph(rank['graph'])
    want = stage_nodes(nodes, size, rank['first_node'], rank['end_node'], inference)
    hold(len(rank['members']) == len(own), 'members', len(rank['members']), 'of nodes', len(own))
    keys, name = [], {}
    for n, member in zip(own, rank['members']):
        key = member
        if member < 0:
            hold(n.op in ('receive', 'send'), n.name, 'is no message')
            v, k = n.name.partition(':')[2].split('.')
            key = n.op, (int(v), int(k))
        hold(key in want, 'node', key, 'is not of this stage')
        hold(key not in keys, 'node', key, 'is there twice')
        keys.append(key)
        like = want[key]
        for t, here in zip(like.outs, n.outs): name[here] = t
        hold(n.sizes == like.sizes, key, 'outputs', n.sizes, 'of', like.sizes)
        hold([name.get(t) for t in n.ins] == like.ins, key, 'reads', [name.get(t) for t in n.ins], 'for', like.ins)
        hold({name.get(t) for t in n.reads} == like.reads, key, 'needs', n.reads, 'for', like.reads)
        for field in ('op', 'grad', 'fwd', 'bwd', 'saved', 'fwork', 'bwork', 'swork', 'param', 'keep', 'once', 'inplace'):
            hold(getattr(n, field) == getattr(like, field), key, field, getattr(n, field), 'for', getattr(like, field))
        hold(member < 0 or n.rest == like.rest, key, n.rest, 'for', like.rest)
    hold(len(keys) == len(want), 'the stage lacks', set(want) - set(keys))
    return [want[key] for key in keys]

# -- steps of one rank --

class Memory:
    """Allocations in the order of the rules, each at the next offset."""
    def __init__(self, offsets, align):
        self.offsets, self.align, self.next, self.live, self.used = offsets, align, 0, {}, []
        self.bytes = self.peak = self.high = 0
    def add(self, key, size):
        hold(key not in self.live, key, 'is allocated twice')
        if not size: return
        hold(self.next < len(self.offsets), 'no offset for', key)
        at = self.offsets[self.next]
        self.next += 1
        hold(at >= 0 and at % self.align == 0, 'offset', at, 'of', key, 'is not aligned')
        i = bisect.bisect_left(self.used, (at, at))
        for begin, end in self.used[max(0, i - 1):i + 1]: hold(at + size <= begin or end <= at, key, 'shares bytes with another')
        self.used.insert(i, (at, at + size))
        self.live[key] = at, size
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        self.high = max(self.high, -(-(at + size) // self.align) * self.align)
    def free(self, key):
        if key not in self.live: return
        at, size = self.live.pop(key)
        self.used.pop(bisect.bisect_left(self.used, (at, at + size)))
        self.bytes -= size
    def move(self, old, new):
        if old in self.live: self.live[new] = self.live.pop(old)

class Slot:
    """One micro-batch."""
    def __init__(self):
        self.here, self.coming, self.saved, self.ran, self.done = set(), set(), set(), set(), set()
        self.leaving, self.returning, self.on_host = set(), set(), set()    # by copies to and from the host
        self.grads, self.summing, self.under_way = set(), set(), {}
        self.held_by = {}                   # tensor -> calls under way that read it
        self.bytes = 0                      # beside graph inputs and gradients

class Rank:
    def __init__(self, number, said, stage, nodes, size, align, batches, inference):
        self.number, self.stage, self.nodes, self.size, self.inference = number, stage, nodes, size, inference
        self.node = {n.key: n for n in stage}
        self.memory, self.slots = Memory(said['offsets'], align), [Slot() for _ in range(batches)]
        self.host = Memory(said['host_offsets'], align)
        self.copies = 0
        self.consumers = {t: [n for n in stage if t in n.ins] for n in stage for t in n.outs}
        self.cost = self.sent = 0
        self.begun = []                     # for the time: ('call', cost), ('begin', channel, message, bytes, sends), ('wait', channel, message)
        self.calls = []                     # (kind, key, slot) of first forwards and backwards
        self.left = {}                      # slot -> its bytes when the first call of another came after its own
        self.last = None
        self.trace = [[] for _ in range(batches)]       # (kind, nodes that have run, bytes) after each step of a slot
        for s, slot in enumerate(self.slots):
            for n in stage:
                if n.op != 'input': continue
                for t in n.outs: slot.here.add(t); self.memory.add((s, 'output', t), size[t])
        self.fixed = self.memory.bytes

    def add(self, s, kind, t, size):
        self.memory.add((s, kind, t), size)
        if kind != 'gradient': self.slots[s].bytes += size

    def free(self, s, kind, t):
        key = s, kind, t
        if key in self.memory.live and kind != 'gradient': self.slots[s].bytes -= self.memory.live[key][1]
        self.memory.free(key)

    def bytes_of(self, t): return 0 if t[0] == 'send' else self.size[t]

    def channel(self, n, backward):
        """Boundary and direction of a message, and whether this rank sends it."""
        receives = n.op == 'receive'
        return (self.number - receives, 'back' if backward else 'there'), receives == backward

    def forward(self, n, s, kind, begins):
        slot = self.slots[s]
        hold(not (n.once and n.key in slot.ran), 'runs once only')
        for t in n.ins: hold(t in slot.here, 'input', t, 'is not resident')
        hold(not any(t in slot.coming for t in n.outs), 'an output is coming')
        hold(not any(t in slot.leaving or t in slot.returning for t in n.outs), 'an output is being copied')
        missing = [t for t in n.outs if t not in slot.here]
        if kind == 'S': hold(n.saved and n.key not in slot.saved, 'saves nothing, or again')
        else: hold(missing, 'all outputs are resident')
        again = [t for t in n.outs if t in slot.here and missing]
        hold(begins == (n.op in ('receive', 'send')), 'begins what is no message, or the other way round')
        if begins: hold(kind == 'F' and missing == n.outs, 'begins not all outputs')
        if kind == 'I':
            hold(n.inplace is not None and n.outs[0] in missing, 'may not run in place')
            over = n.ins[n.inplace]
            hold(self.nodes[over[0]].op != 'input' and n.ins.count(over) == 1 and self.size[over] == self.size[n.outs[0]], 'may not overwrite', over)
            self.untouched(slot, over)
            slot.here.remove(over)
            self.memory.move((s, 'output', over), (s, 'output', n.outs[0]))
            slot.here.add(n.outs[0]); missing = missing[1:]
        for t in missing: self.add(s, 'output', t, self.bytes_of(t)); (slot.coming if begins else slot.here).add(t)
        for t in again: self.add(s, 'second', t, self.bytes_of(t))
        if kind == 'S': self.add(s, 'saved', n.key, n.saved); slot.saved.add(n.key)
        self.add(s, 'scratch', n.key, n.swork if kind == 'S' else n.fwork)
        self.free(s, 'scratch', n.key)
        for t in again: self.free(s, 'second', t)
        if n.key not in slot.ran: self.calls.append(('F', n.key, s))
        slot.ran.add(n.key)
        if begins: self.begin(n, s, False)
        else: self.call(n.fwd)

    def backward(self, n, s, begins):
        slot = self.slots[s]
        hold(not self.inference and n.grad and n.key not in slot.done and n.key in slot.ran, 'may not run backward')
        hold(begins == (n.op in ('receive', 'send')), 'begins what is no message, or the other way round')
        for t in n.outs:
            for reader in self.consumers.get(t, ()):
                hold(not reader.grad or reader.key in slot.done and reader.key not in slot.under_way, reader.key, 'has not run backward')
        for t in n.reads: hold(t in slot.here, 'needs', t)
        if n.saved: hold(n.key in slot.saved, 'needs its saved bytes')
        if n.op == 'send': hold(n.ins[0] not in slot.grads, 'a gradient is there before that of the later stages')
        for t in n.outs + n.ins:
            if not (t[0] == 'send' or self.nodes[t[0]].grad): continue
            hold(t not in slot.summing, 'the gradient of', t, 'is under way')
            if t not in slot.grads: slot.grads.add(t); self.add(s, 'gradient', t, self.bytes_of(t))
        self.add(s, 'scratch', n.key, n.bwork)
        self.free(s, 'scratch', n.key)
        self.calls.append(('B', n.key, s))
        slot.done.add(n.key)
        if begins: self.begin(n, s, True)
        else: self.call(n.bwd); self.end_backward(n, s)

    def end_backward(self, n, s):
        slot = self.slots[s]
        for t in n.outs: slot.grads.discard(t); self.free(s, 'gradient', t)
        slot.saved.discard(n.key); self.free(s, 'saved', n.key)

    def call(self, cost):
        self.cost += cost
        self.begun.append(('call', cost))

    def untouched(self, slot, t):
        hold(t in slot.here, t, 'is not resident')
        hold(not slot.held_by.get(t), t, 'is read by a call under way')

    def operands(self, n, backward):
        return n.reads if backward else set(n.ins)

    def begin(self, n, s, backward):
        slot = self.slots[s]
        tensor = n.key[1]
        channel, sends = self.channel(n, backward)
        slot.under_way[n.key] = backward
        for t in self.operands(n, backward): slot.held_by[t] = slot.held_by.get(t, 0) + 1
        if backward: slot.summing.add(tensor)
        self.begun.append(('begin', channel, (tensor, s), self.size[tensor], sends))
        if sends: self.sent += self.size[tensor]

    def wait(self, n, s):
        slot = self.slots[s]
        hold(n.key in slot.under_way, 'nothing is under way')
        backward = slot.under_way.pop(n.key)
        for t in self.operands(n, backward): slot.held_by[t] -= 1
        if backward: slot.summing.discard(n.key[1]); self.end_backward(n, s)
        else:
            for t in n.outs: slot.coming.discard(t); slot.here.add(t)
        self.begun.append(('wait', self.channel(n, backward)[0], (n.key[1], s)))

    def drop(self, n, s, output):
        slot = self.slots[s]
        gone = [n.outs[output]] if output is not None else [t for t in n.outs if t in slot.here]
        hold(gone, 'no output is resident')
        for t in gone: self.untouched(slot, t); slot.here.remove(t); self.free(s, 'output', t)

    def copy(self, n, s, kind, output):
        """To the host and back, one after the other on the rank's own link; the bytes are there until W says that they are not."""
        slot, t = self.slots[s], n.outs[output]
        if kind == 'O':
            self.untouched(slot, t)
            hold(t not in slot.on_host, t, 'is on the host')
            slot.here.remove(t); slot.leaving.add(t); slot.on_host.add(t)
            self.host.add((s, t), self.bytes_of(t))
        elif kind == 'L':
            hold(t in slot.on_host and not any(t in where for where in (slot.here, slot.leaving, slot.returning, slot.coming)), t, 'cannot come back')
            slot.returning.add(t)
            self.memory.add((s, 'output', t), self.bytes_of(t))      # of the slot, wherever they are
        elif kind == 'W':
            hold(t in slot.leaving or t in slot.returning, t, 'is not being copied')
            if t in slot.leaving: slot.leaving.remove(t); self.memory.free((s, 'output', t))
            else: slot.returning.remove(t); slot.here.add(t)
        else:
            hold(t in slot.on_host and t not in slot.leaving and t not in slot.returning, t, 'has no copy on the host to drop')
            slot.on_host.remove(t); self.host.free((s, t))
        if kind in 'OL': self.copies += 1; self.begun.append(('copy', (t, s), self.bytes_of(t)))
        elif kind == 'W': self.begun.append(('copied', (t, s)))

    def step(self, words):
        kind, target = words[0], words[1]
        target, _, s = target.partition('@')
        number, dot, output = target.partition('.')
        s = int(s or 0)
        hold(s < len(self.slots) and int(number) < len(self.stage), 'no such node or slot')
        n, slot, begins = self.stage[int(number)], self.slots[s], words[2:] == ['begin']
        if kind in ('F', 'I', 'S', 'B') and not begins:
            if self.last not in (None, s) and all(isinstance(key, tuple) for key in self.slots[self.last].done): self.left.setdefault(self.last, self.slots[self.last].bytes)
            self.last = s
        hold(n.op != 'input' and (len(words) == 2 or begins) and (not dot or kind in ('D', 'O', 'L', 'W', 'DH')), 'is no step')
        hold(n.key not in slot.under_way or kind == 'W', 'a call of it is under way')
        if kind in ('F', 'I', 'S'): self.forward(n, s, kind, begins)
        elif kind == 'B': self.backward(n, s, begins)
        elif kind in ('O', 'L', 'DH') or kind == 'W' and n.key not in slot.under_way: self.copy(n, s, kind, int(output) if dot else 0)
        elif kind == 'W': self.wait(n, s)
        elif kind == 'D': self.drop(n, s, int(output) if dot else None)
        elif kind == 'DS':
            hold(n.key in slot.saved, 'saved bytes are not resident')
            slot.saved.remove(n.key); self.free(s, 'saved', n.key)
        else: hold(False, 'unknown')

    def run(self, text):
        for k, line in enumerate(text.splitlines()):
            words = line.split()
            try: self.step(words)
            except Wrong as why: raise Wrong('rank %d, step %d (%s): %s' % (self.number, k, line, why))
            s = int(words[1].partition('@')[2] or 0)
            kind = 'ask' if words[0] == 'B' and words[2:] == ['begin'] else words[0]
            self.trace[s].append((kind, len(self.slots[s].ran), self.slots[s].bytes))
        self.check_end()

    def held(self, s):
        """Bytes of a micro-batch when the first call of another one comes after its forwards, or those that they may be."""
        if s in self.left: return {self.left[s]}
        trace = self.trace[s]
        if not trace: return {0}            # nothing runs in this stage
        sizes = set()
        for ends in ('B',), ('B', 'ask'):       # some node may run behind the turn, also when gradients have been asked for
            turn = next((k for k, (kind, _, _) in enumerate(trace) if kind in ends), len(trace))
            if not turn: continue
            last = next(k for k, (_, ran, _) in enumerate(trace) if ran == trace[turn - 1][1])
            sizes |= {size for kind, _, size in trace[last:turn] if kind != 'ask'}
        return sizes

    def in_flight(self):
        """Micro-batches between their first call and their last backward, at most."""
        own = {n.key for n in self.stage if n.grad and n.op not in ('receive', 'send')}
        left, flying, most = {s: len(own) for s in range(len(self.slots))}, set(), 0
        for kind, key, s in self.calls:
            if key not in own: continue
            if kind == 'F': flying.add(s)
            else: left[s] -= 1
            most = max(most, len(flying))
            if not left[s]: flying.discard(s)
        return most if own else None

    def check_end(self):
        for s, slot in enumerate(self.slots):
            hold(not slot.under_way, 'rank', self.number, 'slot', s, 'a call never ends')
            for n in self.stage:
                if n.op == 'input': continue
                hold(self.inference or not n.grad or n.key in slot.done, n.key, 'slot', s, 'never ran backward')
                hold(n.op not in ('receive', 'send') or n.key in slot.ran, n.key, 'slot', s, 'is no message')
                if n.keep: hold(all(t in slot.here for t in n.outs), 'result', n.key, 'slot', s, 'is not resident')
            hold(not slot.grads, 'slot', s, 'gradients are left')
        for memory in self.memory, self.host: hold(memory.next == len(memory.offsets), 'offsets of', len(memory.offsets), 'for', memory.next)
        hold(not self.host.live, 'copies are left on the host')
        for n in self.stage:
            if n.op == 'input': continue
            for kind in 'FB':
                slots = [s for k, key, s in self.calls if k == kind and key == n.key]
                hold(kind == 'F' and n.op in ('receive', 'send') or slots == sorted(slots), kind, n.key, 'micro-batches in the order', slots)

# -- all ranks in time --

class Channel:
    """Messages of one direction between two neighbours, in the order of the sender, one at a time."""
    def __init__(self): self.sent, self.asked, self.bytes, self.order, self.arrived, self.free = {}, {}, {}, [], {}, 0
    def begin(self, message, size, sends, now, rate):
        hold(message not in (self.sent if sends else self.asked), 'message', message, 'is begun twice')
        hold(self.bytes.setdefault(message, size) == size, 'message', message, 'has two sizes')
        if sends: self.sent[message] = now; self.order.append(message)
        else: self.asked[message] = now
        for message in self.order[len(self.arrived):]:
            if message not in self.asked: break
            takes = -(-self.bytes[message] * 10**9 // rate) if rate else 0
            self.free = self.arrived[message] = max(self.free, self.sent[message], self.asked[message]) + takes

def run_all(ranks, rate):
    """When each rank ends."""
    channels, now, at, moved = {}, [0] * len(ranks), [0] * len(ranks), True
    links, ready = [0] * len(ranks), [{} for _ in ranks]        # of copies to and from the host
    while moved:
        moved = False
        for r, rank in enumerate(ranks):
            while at[r] < len(rank.begun):
                what, *told = rank.begun[at[r]]
                if what == 'call': now[r] += told[0]
                elif what == 'copy': links[r] = ready[r][told[0]] = max(links[r], now[r]) + (-(-told[1] * 10**9 // rate) if rate else 0)
                elif what == 'copied': now[r] = max(now[r], ready[r][told[0]])
                else:
                    channel = channels.setdefault(told[0], Channel())
                    if what == 'begin': channel.begin(told[1], told[2], told[3], now[r], rate)
                    elif told[1] not in channel.arrived: break
                    else: now[r] = max(now[r], channel.arrived[told[1]])
                at[r] += 1
                moved = True
    for r, rank in enumerate(ranks): hold(at[r] == len(rank.begun), 'rank', r, 'waits for good')
    for where, channel in channels.items():
        hold(set(channel.sent) == set(channel.asked) == set(channel.arrived), 'channel', where, 'sends what nobody asks for, or the other way round')
    return now, channels

# -- what a program says of all ranks --

def replay(text, said):
    """Raises Wrong where the plans break a rule or a figure is another one."""
    nodes, size = read_graph(text)
    hold(said['nodes'] == len(nodes), 'nodes', said['nodes'])
    batches, inference, count = said['micro_batch_count'], said['inference'], said['rank_count']
    ends = [rank['end_node'] for rank in said['ranks']]
    hold(len(ends) == count and [rank['first_node'] for rank in said['ranks']] == [0] + ends[:-1] and ends[-1] == len(nodes) and
         all(a < b for a, b in zip([0] + ends, ends)), 'stages end at', ends)
    ranks = []
    for r, told in enumerate(said['ranks']):
        try: stage = match_stage(told, nodes, size, inference)
        except Wrong as why: raise Wrong('rank %d: %s' % (r, why))
        rank = Rank(r, told, stage, nodes, size, said['alignment_bytes'], batches, inference)
        rank.run(told['steps'])
        ranks.append(rank)
        weights = sum(n.param for n in nodes[told['first_node']:told['end_node']])
        flight = 1 if inference else batches if said['schedule'] == 'gpipe' else min(batches, count - r)
        figures = {'peak_bytes': rank.memory.peak, 'arena_bytes': rank.memory.high, 'sent_bytes': rank.sent, 'busy_cost': rank.cost,
                   'base_bytes': weights * (1 + (not inference) + said['states']), 'in_flight_count': flight,
                   'step_count': len(told['steps'].splitlines()), 'allocation_count': rank.memory.next,
                   'host_peak_bytes': rank.host.peak, 'host_arena_bytes': rank.host.high}
        for name, found in figures.items(): hold(told[name] == found, 'rank', r, name, told[name], 'is', found)
        hold(inference or rank.in_flight() in (None, flight), 'rank', r, 'holds', rank.in_flight(), 'micro-batches')
        for s in range(batches): hold(told['held_bytes'] in rank.held(s), 'rank', r, 'held_bytes', told['held_bytes'], 'slot', s, rank.held(s))
        hold(rank.host.high <= said['host_budget_bytes'], 'rank', r, 'exceeds the host budget')
        hold(not said['budget_bytes'] or told['base_bytes'] + rank.memory.high <= said['budget_bytes'], 'rank', r, 'exceeds the budget')
    now, channels = run_all(ranks, said['link_bytes_per_second'])
    hold([told['end_cost'] for told in said['ranks']] == now, 'ranks end at', [told['end_cost'] for told in said['ranks']], 'for', now)
    for boundary in range(count - 1):
        cross = crossing(nodes, ends[boundary])
        for way, tensors in ('there', cross), ('back', [t for t in cross if nodes[t[0]].grad and not inference]):
            got = set(channels[boundary, way].sent) if (boundary, way) in channels else set()
            hold(got == {(t, s) for t in tensors for s in range(batches)}, 'boundary', boundary, way, 'carries', got)
    hold(said['total_cost'] == max(now), 'total', said['total_cost'], 'for', max(now))
    hold(said['lower_bound_cost'] <= max(now), 'the bound', said['lower_bound_cost'], 'is above the total', max(now))
    bubble = 1 - sum(rank.cost for rank in ranks) / (count * max(now)) if max(now) else 0
    hold(abs(said['bubble_ratio'] - bubble) < 1e-6, 'bubble', said['bubble_ratio'], 'for', bubble)

# -- models --

def random_graph(random):
    """A graph with every attribute that matters to steps, as .tlg."""
    lines, nodes = ['tlg 1'], []
    for v in range(random.randint(4, 13)):
        is_input = v == 0 or v < 3 and random.random() < 0.3
        outs = [0 if random.random() < 0.05 else random.randint(1, 40) for _ in range(1 if random.random() < 0.8 else random.randint(2, 3))]
        if is_input:
            lines.append('node %d x%d input fwd=0 bwd=0 out=%s needs=none in=-' % (v, v, ','.join(map(str, outs))))
            nodes.append((outs, True, False)); continue
        ins = []
        for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
            u = v - 1 if random.random() < 0.6 else random.randrange(v)
            ins.append((u, random.randrange(len(nodes[u][0]))))
        grad, more = random.random() < 0.9, ''
        words = [random.choice(('in', 'in%d' % random.randrange(len(ins)), 'out', 'out%d' % random.randrange(len(outs)))) for _ in range(random.randint(0, 2))]
        if random.random() < 0.3: more += ' fwork=%d' % random.randint(1, 20)
        if random.random() < 0.3: more += ' param=%d' % random.randint(1, 20)
        if random.random() < 0.05: more += ' once'
        if random.random() < 0.05: more += ' keep'
        into = [k for k, (u, j) in enumerate(ins) if not nodes[u][1]]
        if into and random.random() < 0.3:
            k = random.choice(into)
            outs[0] = nodes[ins[k][0]][0][ins[k][1]]
            if outs[0]: more += ' inplace=%d' % k
        if grad:
            if random.random() < 0.2: more += ' saved=%d' % random.randint(1, 30)
            if random.random() < 0.3: more += ' bwork=%d' % random.randint(1, 20)
            if 'saved' in more and random.random() < 0.3: more += ' swork=%d' % random.randint(0, 20)
        else: more += ' grad=no'; words = []
        lines.append('node %d n%d op fwd=%d bwd=%d out=%s needs=%s in=%s%s' % (v, v, random.randint(0, 30), random.randint(1, 30) if grad else 0,
            ','.join(map(str, outs)), ','.join(words) or 'none', ','.join('%d.%d' % t for t in ins), more))
        nodes.append((outs, False, grad))
    return '\n'.join(lines) + '\n'

class Program:
    def __init__(self, path, folder): self.path, self.model = path, os.path.join(folder, 'model.tlg')
    def plan(self, *args):
        """What it says, or the least budget that it names."""
        done = subprocess.run([self.path, self.model, '--json', '-', *args], capture_output=True, text=True, timeout=300)
        if done.returncode == 2: return int(re.search(r'least found is (\d+)', done.stderr)[1])
        if done.returncode: raise Wrong('%s: %s' % (' '.join(args), done.stderr.strip()))
        return json.loads(done.stdout)

def budgets(program, args):
    """Plans of one case: without a budget, then at the least that works and at some between."""
    whole = program.plan(*args)
    yield whole
    most, least = max(r['base_bytes'] + r['arena_bytes'] for r in whole['ranks']), 1
    got = program.plan(*args, '--budget', '1') if most > 1 else whole
    while not isinstance(got, dict):                # each rank names its own
        hold(got > least, 'the least budget', got, 'was named and does not do')
        least = got
        got = program.plan(*args, '--budget', str(least))
    yield got
    for part in 1, 2:
        got = program.plan(*args, '--budget', str(least + (most - least) * part // 3 or 1))
        hold(isinstance(got, dict), 'a budget above the least', least, 'is refused, least', got)
        yield got

def options(random, count, batches):
    args = ['--ranks', str(count), '--micro-batches', str(batches), '--work', '2000000']
    if random.random() < 0.1: args += ['--inference']
    else:
        if random.random() < 0.4: args += ['--gpipe']
        if random.random() < 0.3: args += ['--states', str(random.randint(1, 2))]
    if random.random() < 0.6: args += ['--link', random.choice(('1GB/s', '3GB/s', '100MB/s', '7GB/s'))]
    if random.random() < 0.3: args += ['--align', random.choice(('4', '16'))]
    if '--inference' not in args and random.random() < 0.6: args += ['--host-budget', random.choice(('1GiB', '1GiB', '200', '60'))]
    return args

# -- plans that are broken on purpose --

def breakages(said):
    """(what, a copy that is wrong)."""
    def changed(what, change):
        broken = copy.deepcopy(said)
        if change(broken) is not False: yield what, broken
    def more(rank, name): rank[name] += 10**6 if name == 'held_bytes' else 1    # these may be one of several where no other call comes between
    def without(rank, word):
        lines = rank['steps'].splitlines()
        found = [k for k, line in enumerate(lines) if line.split()[0] == word]
        if not found: return False
        del lines[found[len(found) // 2]]
        rank['steps'], rank['step_count'] = '\n'.join(lines), len(lines)
    def swapped_slots(rank):
        if said['micro_batch_count'] < 2 or said['inference'] or not re.search('^B', rank['steps'], re.M): return False
        name = {'': '@1', '@1': ''}
        rank['steps'] = '\n'.join(re.sub(r'^(\w+ [\d.]+)(@\d+)?', lambda m: m[1] + name.get(m[2] or '', m[2] or ''), line) for line in rank['steps'].splitlines())
    def on_one_spot(rank):
        if len(set(rank['offsets'])) < 2: return False
        rank['offsets'] = [0] * len(rank['offsets'])
    def needs_less(rank):
        rank['graph'] = new = re.sub(r'needs=(in|out)\S*', 'needs=none', old := rank['graph'], count=1)
        return new != old
    def reads_another(rank):
        rank['graph'] = new = re.sub(r'(in=)(\d+)(\S*)$', lambda m: m[1] + str(int(m[2]) - 1) + m[3] if int(m[2]) else m[0], old := rank['graph'], count=1, flags=re.M)
        return new != old
    def other_members(rank):
        own = [k for k, v in enumerate(rank['members']) if v >= 0]
        if len(own) < 2: return False
        a, b = own[:2]
        rank['members'][a], rank['members'][b] = rank['members'][b], rank['members'][a]
    def cut_elsewhere(all):
        if all['rank_count'] < 2 or all['ranks'][0]['end_node'] < 2: return False
        rank, last = all['ranks'][0], all['ranks'][0]['end_node'] - 1
        nodes = [line.split() for line in rank['graph'].splitlines() if line.startswith('node')]
        # an input may stand on either side
        if last not in rank['members'] or nodes[rank['members'].index(last)][3] == 'input': return False
        all['ranks'][0]['end_node'] -= 1; all['ranks'][1]['first_node'] -= 1
    for r in range(len(said['ranks'])):
        for name in ('peak_bytes', 'arena_bytes', 'sent_bytes', 'held_bytes', 'base_bytes', 'busy_cost', 'end_cost', 'in_flight_count', 'host_peak_bytes',
                     'host_arena_bytes'):
            yield from changed(name, lambda all: more(all['ranks'][r], name))
        for word in 'B', 'W', 'F', 'O', 'L', 'DH':
            yield from changed('a missing ' + word, lambda all: without(all['ranks'][r], word))
        for change in swapped_slots, on_one_spot, needs_less, reads_another, other_members:
            yield from changed(change.__name__, lambda all: change(all['ranks'][r]))
    yield from changed('cut_elsewhere', cut_elsewhere)
    yield from changed('total_cost', lambda all: more(all, 'total_cost'))
    yield from changed('link', lambda all: False if not all['link_bytes_per_second'] or not any(r['sent_bytes'] for r in all['ranks']) else all.update(link_bytes_per_second=1))

def must_be_found(text, said):
    """How often each breakage was found."""
    found = {}
    for what, broken in breakages(said):
        try: replay(text, broken)
        except Wrong: found[what] = found.get(what, 0) + 1; continue
        raise Wrong('a plan that is broken passes: ' + what)
    return found

# -- all of it --

def cases(random, count, skipped):
    """(name, text, how many sets of options)"""
    for folder, names, times in ('small', sorted(os.path.basename(f)[:-4] for f in glob.glob(os.path.join(ROOT, 'small', '*.tlg'))), 2), ('models', MODELS, 1):
        for name in names:
            path = os.path.join(ROOT, folder, name + '.tlg')
            if os.path.exists(path): yield name, open(path).read(), times
            else: skipped.append(name)
    for k in range(count): yield 'random %d' % k, random_graph(random), 1

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('program', nargs='?', default='build/tl_plan')
    ap.add_argument('--random', type=int, default=120 * max(1, int(os.environ.get('SOAK') or 1)))
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--model'); ap.add_argument('--plan')
    a = ap.parse_args()
    if a.plan:
        try: replay(open(a.model).read(), json.load(open(a.plan)))
        except Wrong as why: print('WRONG', why); return 1
        print('agrees'); return 0
    choose, begin, skipped, found = random.Random(a.seed), time.time(), [], {}
    graphs = plans = steps = tight = copied = 0
    with tempfile.TemporaryDirectory() as folder:
        program = Program(os.path.abspath(a.program), folder)
        for name, text, times in cases(choose, a.random, skipped):
            with open(program.model, 'w') as file: file.write(text)
            most = sum(n.op != 'input' for n in read_graph(text)[0])
            graphs += 1
            for _ in range(times):
                count, batches = choose.randint(1, min(5, most)), choose.randint(1, 6)
                args = options(choose, count, batches)
                try:
                    for number, said in enumerate(budgets(program, args)):
                        replay(text, said)
                        plans += 1
                        tight += number > 0 and said['total_cost'] > whole['total_cost']
                        if not number: whole = said
                        steps += sum(rank['step_count'] for rank in said['ranks'])
                        copied += any(rank['host_peak_bytes'] for rank in said['ranks'])
                        if number == 1 and graphs % 8 == 0:
                            for what, often in must_be_found(text, said).items(): found[what] = found.get(what, 0) + often
                except Wrong as why:
                    print('WRONG %s, %s: %s\n%s' % (name, ' '.join(args), why, text), end='')
                    return 1
    if skipped: print('SKIPPED %s: no reference data' % ' '.join(skipped))
    elif not glob.glob(os.path.join(ROOT, 'small', '*.tlg')): print('SKIPPED small/: no reference data')
    print('replay_ranks: %d plans of %d graphs agree (%d with recomputation, %d with copies), %d steps, %.1f s; breakages found: %s' %
          (plans, graphs, tight, copied, steps, time.time() - begin, ', '.join('%s %d' % pair for pair in sorted(found.items()))))
    return 0

if __name__ == '__main__': sys.exit(main())
