#!/usr/bin/env python3
"""Whole training steps planned by tl_plan, beside a prototype's simulation of them.

    tests/whole_step.py GRAPHS RESULTS.csv [TL_PLAN] [MODEL ..]

GRAPHS holds graphs whose nodes name their weights (NAME.tlgs: `state <id> <name> bytes=`, on nodes `states=`), RESULTS.csv what the
prototype found for them: bytes and time of a step with AdamW, the updates at the end or fused. Each row is planned within the
prototype's bytes: the cost must be no higher than its time, and the arena no larger than 1.002 of the live bytes."""
import csv, json, os, subprocess, sys, tempfile

DEVICES = {'gpu': (300e9, 5e-6), 'm7': (400e6, 2e-6)}       # bytes a second, seconds a call
VARIANTS = {'b lazy g, end (clip)': 'end', 'b fused': 'fused'}
MOMENTS, OPTIMIZERS = 2, ('sgd', 'momentum', 'adamw')       # AdamW reads w, g, m, v, and writes w, m, v
PIECES = ('mcu_mlp_b1', 4096, (50.7, 67.1, 75.3))           # bytes of a piece; per cent of a step with whole gradients


def read(path):
    states, nodes, device = [], [], None
    for line in open(path):
        words = line.split()
        if line.startswith('#'):
            device = words[3].rstrip(';')
        elif words and words[0] == 'state':
            states.append((words[2], int(words[3].split('=')[1])))
        elif words and words[0] == 'node':
            pairs = [w.split('=', 1) for w in words[4:] if '=' in w]
            nodes.append((words[2], words[3], dict(pairs), [w for w in words[4:] if '=' not in w]))
    return states, nodes, device


def count_rows(nodes, p, size):
    """Rows of a weight, at batch 1: one for each float of its reader's output. 0: they do not divide it."""
    rows = [int(values['out']) // 4 for _, _, values, _ in nodes if str(p) in values.get('states', '').split(',')]
    return rows[0] if len(rows) == 1 and rows[0] and size % rows[0] == 0 else 0


def convert(path, updates, moments=MOMENTS):
    """The graph as tlg 2: states above their first readers, or above everything."""
    states, nodes, device = read(path)
    rate, call = DEVICES[device]
    out, ids, state_ids = [], {}, {}

    def add_state(p):
        name, size = states[p]
        state_ids[p] = len(out)
        cost = int(round(1e9 * ((3 + 2 * moments) * size / rate + call)))
        rows = count_rows(nodes, p, size)
        out.append('state %d w.%s %s w=%d%s upd=%d%s' % (len(out), name, OPTIMIZERS[moments], size,
                   ' m=' + ','.join([str(size)] * moments) if moments else '', cost, ' wrows=%d' % rows if rows else ''))

    if updates == 'end':
        for p in range(len(states)):
            add_state(p)
    for number, (name, op, values, flags) in enumerate(nodes):
        reads = [int(p) for p in values['states'].split(',')] if 'states' in values else []
        inputs = [] if values['in'] == '-' else values['in'].split(',')
        for p in reads:
            if p not in state_ids:
                add_state(p)
        needs = set(values['needs'].split(','))
        words = ['in%d' % k for k in range(len(inputs)) if 'in' in needs]
        words += ['in%d' % (len(inputs) + k) for k in range(len(reads))] + (['out'] if 'out' in needs else [])
        ids[number] = len(out)
        tensors = [str(ids[int(i)]) for i in inputs] + [str(state_ids[p]) for p in reads]
        keys = [k for k in ('fwork', 'bwork') if k in values]
        out.append(' '.join(['node %d %s %s fwd=%s bwd=%s out=%s' % (len(out), name, op, values['fwd'], values['bwd'], values['out']),
                             'needs=' + (','.join(words) or 'none'), 'in=' + (','.join(tensors) or '-')] +
                            ['%s=%s' % (k, values[k]) for k in keys] + flags))
    return 'tlg 2\n%s\nend %d\n' % ('\n'.join(out), len(out))


def plan(tool, model, *options):
    done = subprocess.run([tool, model, '--json', '-', *options], capture_output=True, text=True)
    if done.returncode == 2:
        return None
    if done.returncode:
        sys.exit('%s %s: %s' % (model, ' '.join(options), done.stderr))
    return json.loads(done.stdout)


def check_pieces(graphs, tool, folder):
    """The MLP whose one layer is nearly everything, its gradients in pieces: how many rows take more than the prototype's."""
    name, piece, wanted = PIECES
    source, worse = os.path.join(graphs, name + '.tlgs'), 0
    if not os.path.exists(source):
        return 0
    weights = sum(size for _, size in read(source)[0])
    print('\n%-16s %-10s %14s %14s %8s %8s %8s' % ('model', 'optimizer', 'whole', 'pieces', '%', 'wanted', 'cost'))
    for moments, limit in enumerate(wanted):
        model = os.path.join(folder, 'pieces_%d.tlg' % moments)
        open(model, 'w').write(convert(source, 'fused', moments))
        states = plan(tool, model, '--budget', '100%', '--live')
        activations = 4676                                  # of keeping all of them, beside weights and gradients
        whole = (2 + moments) * weights + activations
        cut = plan(tool, model, '--pieces', str(piece), '--piece-cost', '2000', '--budget', str(whole * limit / 100).split('.')[0])
        bad = cut is None
        worse += bad
        print('%-16s %-10s %14d %14s %8s %8.1f %8s %s' % (name, OPTIMIZERS[moments], whole, cut['arena_bytes'] if cut else '-',
              '%.1f' % (100 * cut['arena_bytes'] / whole) if cut else '-', limit,
              '%.4f' % (cut['total_cost'] / states['base_cost']) if cut else '-', 'WORSE' if bad else ''))
    return worse


def main():
    graphs, results, tool = sys.argv[1], sys.argv[2], (sys.argv[3:] + ['build/tl_plan'])[0]
    wanted, worse = sys.argv[4:], 0
    print('%-16s %4s %-6s %14s %14s %8s %8s %9s' % ('model', 'act', 'mode', 'bytes', 'live', 'time', 'cost', 'arena/live'))
    with tempfile.TemporaryDirectory() as folder:
        for row in csv.DictReader(open(results)):
            source = os.path.join(graphs, row['model'] + '.tlgs')
            if row['variant'] not in VARIANTS or not os.path.exists(source) or (wanted and row['model'] not in wanted):
                continue
            mode = VARIANTS[row['variant']]
            model = os.path.join(folder, '%s_%s.tlg' % (row['model'], mode))
            if not os.path.exists(model):
                open(model, 'w').write(convert(source, mode))
            size, time = int(row['total_bytes']), float(row['time_ratio'])
            live = plan(tool, model, '--live', '--budget', str(size))
            cost = live['total_cost'] / live['base_cost'] if live else float('inf')
            arena = plan(tool, model, '--budget', str(live['peak_bytes'] * 1002 // 1000)) if live else None
            ratio = arena['arena_bytes'] / live['peak_bytes'] if arena else float('inf')
            bad = cost > time + 0.0005 or ratio > 1.002 or (arena and arena['total_cost'] / live['base_cost'] > time + 0.0005)
            worse += bad
            print('%-16s %3s%% %-6s %14d %14s %8.3f %8.3f %9.4f %s' % (row['model'], row['act_pct'], mode, size,
                  live['peak_bytes'] if live else '-', time, cost, ratio, 'WORSE' if bad else ''), flush=True)
        if not wanted or PIECES[0] in wanted:
            worse += check_pieces(graphs, tool, folder)
    print('%d rows are worse' % worse)
    return worse > 0


if __name__ == '__main__':
    sys.exit(main())
