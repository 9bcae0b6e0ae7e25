#!/usr/bin/env python3
"""torch_check.py [DRIVER [TL_PLAN]]   graphs of export_torch.py, read, checked and planned by the library

Each network is exported, read by tl_read_graph, held to tl_check_graph and planned by tl_plan_remat inside a
share of what keeping everything takes (torch_plan.c; built with $CC, else cc, where no DRIVER is given). The
plan must fit, and check_schedule.py of the reference data (TL_SHARED, else ../shared) must say the same. With an optimizer
build/tl_plan, where there is one, may cut the gradients of weights that have rows: at no higher cost.
"""
import os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
CHECKER = os.path.join(SHARED, 'tools', 'check_schedule.py')
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'examples')]

import torch
import torch.nn.functional as F
from torch import nn
from export_torch import export, parse_input
from torch_models import MODELS


class Odd(nn.Module):
    """What the networks do not have: several outputs, tensors made on the way, branches without a gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)
        self.scale = nn.Parameter(torch.ones(64, 64))
        self.attention = nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=True)

    def forward(self, x, labels):
        y = self.a(x)
        largest, where = y.max(1)
        table = x.new_zeros(x.shape)
        table[:, 0] = largest
        y = F.linear(y, torch.sigmoid(self.scale) * self.b.weight) * (x > 0) + table
        y[:, 1:].relu_()
        y = self.attention(y, y, y)[0] + self.b(y).detach()
        one, two = torch.split_copy(y, 32, 2)
        return F.cross_entropy((one * two).sum(1), labels), y.argmax(2)


def odd(): return Odd(), (torch.empty(16, 24, 64), torch.empty(16, dtype=torch.int64))


def network(name, batch=None):
    make, usual, inputs = MODELS[name]
    return lambda: (make(), [parse_input(i, batch or usual) for i in inputs])


CASES = (('resnet18', network('resnet18'), 70), ('encoder', network('encoder'), 40),
         ('unet', network('unet'), 50), ('mobilenet_v2', network('mobilenet_v2'), 60), ('odd', odd, 80))


def planned(driver, path, percent):
    text = subprocess.run([driver, path, str(percent)], check=True, stdout=subprocess.PIPE, text=True).stdout
    words = text.split('\n')[0].split()[1:]
    got = {key: int(value) for key, value in zip(words[::2], words[1::2])}
    assert got['peak'] <= got['budget'] < got['keep_all'], got
    assert got['bound'] <= got['cost'], got
    return got, text


def cost_of(tl_plan, path, *options):
    text = subprocess.run([tl_plan, path, '--budget', '92%', *options], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(re.search(r'^cost (\d+) of', text, re.M).group(1))


def plan_pieces(tl_plan, name, path, module):
    """Linear layers, convolutions and embeddings have rows, and plans with pieces of their gradients are none the worse."""
    rowed = [m.weight.shape[0] for m in module.modules() if isinstance(m, (nn.Linear, nn.Conv2d, nn.Embedding))]
    with open(path, encoding='ascii') as file:
        rows = [int(w[6:]) for line in file for w in line.split() if w.startswith('wrows=')]
    assert rows and not set(rows) - set(rowed), (name, rows, rowed)
    if not os.path.exists(tl_plan): return print('SKIPPED %s in pieces: no %s' % (name, tl_plan))
    whole, cut = cost_of(tl_plan, path), cost_of(tl_plan, path, '--pieces', 'auto')
    assert cut <= whole, (name, cut, whole)
    print('%-13s with AdamW inside 92 %%, %d of %d weights with rows: cost x %.6f of that with whole gradients' % (
        name, len(rows), len(rowed), cut / whole))


def least_in_pieces(tl_plan, folder):
    """Of a batch of one the largest gradient sets the peak: in pieces it does not."""
    module, inputs = network('encoder', 1)()
    path = os.path.join(folder, 'one.tlg')
    export(module, inputs, optimizer='adamw').write(path)
    least = []
    for options in ((), ('--pieces', 'auto')):
        done = subprocess.run([tl_plan, path, '--budget', '1', *options], stderr=subprocess.PIPE, text=True)
        least.append(int(re.search(r'the least that one was found for is (\d+) bytes', done.stderr).group(1)))
    largest = max(4 * p.numel() for p in module.parameters())
    assert least[0] - largest < least[1] < least[0], (least, largest)
    print('encoder of one sequence, least: %d bytes, in pieces %d' % tuple(least))


def plan_all_bytes(driver, tl_plan, name, make, folder):
    """The same with AdamW in the plan: every parameter that autograd trains is there three times."""
    module, inputs = make()
    peaks = []
    for updates in 'fused', 'end':
        path = os.path.join(folder, '%s_%s.tlg' % (name, updates))
        export(module, inputs, title=name, optimizer='adamw', updates=updates).write(path)
        with open(path, encoding='ascii') as file: lines = [l.split() for l in file if l.startswith('state')]
        held = {}
        for words in lines:
            numbers = [int(n) for w in words[4:] if w[:2] in ('w=', 'm=') for n in w[2:].split(',')]
            held[words[3]] = held.get(words[3], 0) + sum(numbers)
        statistics = sum(m.running_mean.numel() * 8 for m in module.modules() if isinstance(m, nn.BatchNorm2d))
        assert held.get('stat', 0) == statistics, held
        assert held['adamw'] == 3 * sum(p.numel() * 4 for p in module.parameters()), held
        if updates == 'fused': plan_pieces(tl_plan, name, path, module)
        got, _ = planned(driver, path, 92)
        assert got['peak'] >= sum(held.values()), got
        peaks.append(got['keep_all'])
    assert peaks[0] <= peaks[1], peaks
    print('%-13s with AdamW: %d bytes kept, %d where all updates are at the end' % (name, *peaks))


def plan(driver, name, make, percent, folder):
    path = os.path.join(folder, name + '.tlg')
    export(*make(), title=name).write(path)
    got, text = planned(driver, path, percent)
    print('%-13s %3d nodes, %11d bytes kept, %2d %%: %11d; cost x %.5f, bound %.5f' % (
        name, got['nodes'], got['keep_all'], percent, got['peak'], got['cost'] / got['base'],
        got['bound'] / got['base']))
    if not os.path.exists(CHECKER): return
    schedule = os.path.join(folder, name + '.txt')
    with open(schedule, 'w', encoding='ascii') as file: file.write(text)
    done = subprocess.run([sys.executable, CHECKER, path, schedule, str(got['budget'])], stdout=subprocess.PIPE,
                          text=True)
    wanted = 'peak_bytes %d cost %d base_cost %d ' % (got['peak'], got['cost'], got['base'])
    assert done.returncode == 0 and done.stdout.startswith(wanted), (name, wanted, done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tl_plan = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, '..', 'build', 'tl_plan')
        driver = sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, 'torch_plan')
        if len(sys.argv) < 2:
            source = os.path.join(HERE, 'torch_plan.c')
            compiler = [os.environ.get('CC', 'cc'), '-std=c99', '-O1', '-o', driver]
            subprocess.run([*compiler, source, '-lm', '-lpthread'], check=True)
        for name, make, percent in CASES:
            plan(driver, name, make, percent, folder)
            plan_all_bytes(driver, tl_plan, name, make, folder)
        if os.path.exists(tl_plan): least_in_pieces(tl_plan, folder)
    if not os.path.exists(CHECKER): print('SKIPPED torch_check: no reference data (tools/check_schedule.py)')


if __name__ == '__main__': main()
