#!/usr/bin/env python3
"""dump_graph.py TOOLS FILE...   what tools/check_schedule.py of the reference data reads in .tlg files, one line a node

test_3_graph.c prints the same lines from what the header reads. A file may hold several graphs, each from its "tlg 2".
"""
import io, os, re, sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import check_schedule

def tensors(pairs):
    return ','.join('%d.%d' % p for p in pairs) or '-'

for path in sys.argv[2:]:
    with open(path, newline='') as file:
        texts = re.split('(?m)^tlg [12]', file.read())[1:]
    for text in texts:
        check_schedule.open = lambda _: io.StringIO(text, newline=None)
        print('graph', os.path.basename(path))
        for n in check_schedule.load(path):
            print('%d %s %s fwd=%d bwd=%d out=%s saved=%d fwork=%d bwork=%d swork=%d grad=%d keep=%d once=%d inplace=%d in=%s reads=%s' % (
                n.id, n.name, n.op, n.fwd, n.bwd, ','.join(map(str, n.out)), n.saved, n.fwork, n.bwork, n.swork,
                n.grad, n.keep, n.once, -1 if n.inplace is None else n.inplace, tensors(n.ins), tensors(sorted(n.reads))))
