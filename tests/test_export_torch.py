#!/usr/bin/env python3
"""test_export_torch.py [CLASS.TEST...]   examples/export_torch.py: the reference graphs, and every rule

Needs PyTorch. Reference data is read from TL_SHARED, else ../shared; a test without its data prints SKIPPED.
"""
import collections, contextlib, io, os, subprocess, sys, tempfile, unittest, unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
PROGRAM = os.path.join(HERE, '..', 'examples', 'export_torch.py')
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.dirname(PROGRAM)]

import torch
import torch.fx
import torch.nn.functional as F
from torch import nn
from export_torch import ExportError, export, kept_bytes, main, parse_input, storage_of
from torch_models import MODELS


def net(forward, **layers):
    module = type('Net', (nn.Module,), {'forward': forward})()
    for name, layer in layers.items(): setattr(module, name, layer)
    return module


def behind(f, layer=None):
    """A function or a module behind a layer, whose output has a gradient."""
    return net(lambda self, x: self.f(self.a(x)), a=layer or linear(), f=f)


def floats(*shape): return torch.empty(shape)


def nodes_of(module, *inputs, **options):
    """{name: 'op out needs in [flags]'}; inputs: tensors or shapes. A loss node only where it is asked for."""
    options.setdefault('loss', 'none')
    graph = export(module, [i if isinstance(i, torch.Tensor) else floats(*i) for i in inputs], **options)
    found = {}
    for line in str(graph).split('\n'):
        if not line.startswith('node'): continue
        words = line.split()
        values = dict(w.split('=') for w in words if '=' in w)
        flags = [w for w in words[4:] if w.split('=')[0] not in ('fwd', 'bwd', 'out', 'needs', 'in')]
        found[words[2]] = ' '.join([words[3], values['out'], values['needs'], values['in']] + flags)
    return found


def costs_of(module, *inputs, **options):
    """{name: (forward, backward)}"""
    graph = export(module, [i if isinstance(i, torch.Tensor) else floats(*i) for i in inputs], loss='none',
                   **options)
    return {n.name: n.costs(graph.roofline) for n in graph.nodes}


def linear(): return nn.Linear(4, 4)


class References(unittest.TestCase):
    """Nodes, bytes, costs, needs and inputs of graphs that were traced elsewhere."""
    made = {}

    def same(self, model, reference, cost='flop'):
        if not os.path.isdir(SHARED): self.skipTest('no reference data')
        make, batch, inputs = MODELS[model]
        if model not in self.made: self.made[model] = make()
        text = str(export(self.made[model], [parse_input(i, batch) for i in inputs], cost=cost))
        with open(os.path.join(SHARED, 'models', reference + '.tlg'), encoding='ascii') as file:
            wanted = [l.split() for l in file if l.startswith('node')]
        given = [l.split() for l in text.split('\n') if l.startswith('node')]
        self.assertEqual(len(given), len(wanted))
        for a, b in zip(given, wanted):     # what is no module is named after its function here, by hand there
            if a[2].startswith(('matmul', 'add')) and b[2].endswith(('qk', 'av', 'add1', 'add2')): a[2] = b[2]
            self.assertEqual(a, b)

    def test_resnet18_equals_the_reference(self): self.same('resnet18', 'resnet18')
    def test_vgg16_equals_the_reference(self): self.same('vgg16', 'vgg16')
    def test_vgg16_equals_the_reference_with_roofline_costs(self): self.same('vgg16', 'vgg16_rl', 'roofline')
    def test_encoder_equals_the_reference(self): self.same('encoder', 'encoder2')
    def test_mobilenet_v2_equals_the_reference(self): self.same('mobilenet_v2', 'mobilenet_v2')
    def test_mobilenet_v2_equals_the_reference_with_roofline_costs(self):
        self.same('mobilenet_v2', 'mobilenet_v2_rl', 'roofline')
    def test_unet_equals_the_reference(self): self.same('unet', 'unet')
    def test_mlp8_equals_the_reference(self): self.same('mlp8', 'mlp8')
    def test_gpt2_small_equals_the_reference(self): self.same('gpt2_small', 'gpt2_small')
    def test_gpt2_small_equals_the_reference_with_roofline_costs(self):
        self.same('gpt2_small', 'gpt2_small_rl', 'roofline')


class Views(unittest.TestCase):
    def test_views_are_no_nodes(self):
        def forward(self, x):
            y = self.a(x).view(4, 2).t().unsqueeze(0).reshape(2, 4)[:, :4].detach()
            return self.b(y + 0.0) + self.a(x).permute(1, 0).flatten().view(2, 4)
        module = net(forward, a=linear(), b=linear())
        self.assertEqual(list(nodes_of(module, (2, 4))), ['x', 'a', 'add', 'b', 'a_1', 'add_1'])

    def test_chunks_are_views_of_one_tensor(self):
        def forward(self, x):
            a, b = self.a(x).chunk(2, 1)
            c, d = torch.split(self.a(x), 2, dim=1)
            return a * b + c * d
        nodes = nodes_of(net(forward, a=linear()), (3, 4))
        self.assertEqual(nodes, {'x': 'input 48 none -', 'a': 'linear 48 in 0', 'a_1': 'linear 48 in 0',
                                 'mul': 'mul 24 in 1', 'mul_1': 'mul 24 in 2', 'add': 'add 24 none 3,4'})

    def test_copies_of_layout_are_folded_or_nodes(self):
        module = net(lambda self, x: self.b(self.a(x).t().contiguous().reshape(2, 4)), a=linear(), b=linear())
        self.assertEqual(nodes_of(module, (2, 4))['b'], 'linear 32 in 1')
        nodes = nodes_of(module, (2, 4), copies='node')
        self.assertEqual((nodes['contiguous'], nodes['b']), ('copy 32 none 1', 'linear 32 in 2'))

    def test_a_change_of_a_folded_copy_does_not_reach_its_source(self):
        module = net(lambda self, x: (lambda y: torch.relu_(y.t().contiguous()) + y.t())(self.a(x)), a=linear())
        nodes = nodes_of(module, (2, 4))
        self.assertEqual((nodes['relu_'], nodes['add']), ('relu 32 out 1', 'add 32 none 2,1'))

    def test_clones_and_conversions_are_nodes(self):
        nodes = nodes_of(net(lambda self, x: self.a(x).clone().half().float(), a=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[2:], ['copy 32 none 1', 'copy 16 none 2', 'copy 32 none 3'])

    def test_dropout_is_a_view_in_evaluation(self):
        module = net(lambda self, x: F.dropout(self.d(self.a(x)), 0.5, self.training), a=linear(),
                     d=nn.Dropout())
        self.assertEqual(list(nodes_of(module, (2, 4))), ['x', 'a', 'd', 'dropout'])
        self.assertEqual(list(nodes_of(module.eval(), (2, 4))), ['x', 'a'])


class InPlace(unittest.TestCase):
    def test_every_form_of_relu_in_place_is_folded(self):
        for relu in (nn.ReLU(inplace=True), nn.ReLU6(True), lambda y: F.relu(y, True), F.relu_, torch.relu_,
                     lambda y: y.relu_(), lambda y: F.relu(y.view(8), inplace=True).view(2, 4)):
            nodes = nodes_of(behind(relu), (2, 4))
            self.assertEqual(nodes['a'], 'linear+relu 32 in,out 0')
            self.assertEqual(len(nodes), 2)

    def test_every_form_of_relu_with_a_buffer_is_a_node(self):
        for relu in (nn.ReLU(), nn.ReLU6(), F.relu, torch.relu, lambda y: y.relu(),
                     lambda y: F.relu(y, inplace=False)):
            nodes = nodes_of(behind(relu), (2, 4))
            self.assertEqual(list(nodes.values())[1:], ['linear 32 in 0', 'relu 32 out 1'])

    def test_relu_in_place_is_a_node_behind_what_reads_its_output(self):
        nodes = nodes_of(net(lambda self, x: F.relu_(torch.exp(self.a(x))), a=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[2:], ['exp 32 out 1', 'relu 32 out 2'])

    def test_relu_in_place_is_a_node_where_its_input_was_read_before(self):
        def forward(self, x):
            y = self.a(x)
            return self.b(y) + F.relu_(y)
        nodes = nodes_of(net(forward, a=linear(), b=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[1:],
                         ['linear 32 in 0', 'linear 32 in 1', 'relu 32 out 1', 'add 32 none 2,3'])

    def test_relu_in_place_of_a_part_is_a_node_of_the_whole(self):
        def forward(self, x):
            y = self.a(x)
            y[:, :2].relu_()
            return y * 2
        nodes = nodes_of(net(forward, a=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[2:], ['relu 32 out 1', 'mul 32 none 2'])

    def test_relu_in_place_of_an_input_leaves_the_input(self):
        nodes = nodes_of(net(lambda self, x: self.a(F.relu_(x)), a=linear()), (2, 4))
        self.assertEqual(list(nodes.values()), ['input 32 none -', 'relu 32 none 0 grad=no', 'linear 32 in 1'])

    def test_readers_after_a_change_see_the_change(self):
        def forward(self, x):
            y = self.a(x)
            z = y.view(-1)
            y += x
            return z * 2, y * 3
        nodes = nodes_of(net(forward, a=linear()), (2, 4))
        self.assertEqual(nodes, {'x': 'input 32 none -', 'a': 'linear 32 in 0', 'add': 'add 32 none 1,0',
                                 'mul': 'mul 32 none 2', 'mul_1': 'mul 32 none 2'})

    def test_an_overwritten_tensor_is_not_read(self):
        def forward(self, x):
            y = self.a(x)
            y.copy_(self.b(x))
            y[:, 0] = 1.0
            return y
        nodes = nodes_of(net(forward, a=linear(), b=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[1:], ['linear 32 in 0', 'copy 32 none 1', 'setitem 32 none 2'])

    def test_dropout_in_place_is_a_node(self):
        nodes = nodes_of(net(lambda self, x: self.d(self.a(x)), a=linear(), d=nn.Dropout(inplace=True)), (2, 4))
        self.assertEqual(nodes['d'], 'dropout 32 none 1')


def last_needs(module, *inputs): return list(nodes_of(module, *inputs).values())[-1].split()[2]


class Needs(unittest.TestCase):
    def needs(self, forward, *inputs):
        return last_needs(net(forward, a=linear(), b=linear()), *(inputs or [(2, 4)]))

    def test_sums_and_scaling_read_nothing(self):
        for f in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: torch.cat([a, b]), lambda a, b: a * 3,
                  lambda a, b: -a, lambda a, b: a / 2, lambda a, b: a.mean(), lambda a, b: torch.stack([a, b]),
                  lambda a, b: 1 - a, lambda a, b: F.pad(a, (1, 1)), lambda a, b: torch.add(a, b, alpha=2)):
            self.assertEqual(self.needs(lambda self, x: f(self.a(x), self.b(x))), 'none')

    def test_activations_read_what_gives_their_derivative(self):
        for f in (torch.sigmoid, torch.tanh, torch.exp, torch.sqrt, nn.Tanh(), nn.LeakyReLU(), F.elu,
                  lambda y: y.softmax(-1), lambda y: F.log_softmax(y, 1), nn.Softmax(-1), lambda y: 1 ** y):
            self.assertEqual(last_needs(behind(f), (2, 4)), 'out')
        for f in (F.gelu, nn.GELU(), F.silu, nn.Hardswish(), torch.abs, torch.log, lambda y: y ** 2,
                  lambda y: 1 / y,
                  lambda y: y.clamp(0, 1), F.softplus, lambda y: y * y, nn.PReLU(), nn.LayerNorm(4)):
            self.assertEqual(last_needs(behind(f), (2, 4)), 'in')

    def test_products_read_what_the_gradients_of_the_others_need(self):
        self.assertEqual(self.needs(lambda self, x: self.a(x) * self.b(x)), 'in')
        self.assertEqual(self.needs(lambda self, x: self.a(x) * x), 'in1')
        self.assertEqual(self.needs(lambda self, x: x * self.a(x)), 'in0')
        self.assertEqual(self.needs(lambda self, x: self.a(x) @ x.t()), 'in1')
        self.assertEqual(self.needs(lambda self, x: self.a(x) / self.b(x)), 'in')
        self.assertEqual(self.needs(lambda self, x: self.a(x) / x), 'in1')
        self.assertEqual(self.needs(lambda self, x: self.a(x) * self.a.weight[0]), 'in')
        self.assertEqual(self.needs(lambda self, x: torch.einsum('bi,bj->bij', self.a(x), self.b(x))), 'in')

    def test_a_frozen_weight_needs_no_input(self):
        module = net(lambda self, x: self.b(self.a(x)), a=linear(), b=linear())
        module.b.weight.requires_grad_(False)
        self.assertEqual(nodes_of(module, (2, 4))['b'], 'linear 32 none 1')
        module.a.requires_grad_(False)
        self.assertEqual(nodes_of(module, (2, 4))['a'], 'linear 32 none 0 grad=no')
        self.assertEqual(nodes_of(module, (2, 4))['b'], 'linear 32 none 1')

    def test_selections_read_the_index_only(self):
        index = torch.empty(2, dtype=torch.int64)
        mask = torch.empty(2, 4, dtype=torch.bool)
        self.assertEqual(self.needs(lambda self, x, i: self.a(x)[i], (2, 4), index), 'in1')
        self.assertEqual(self.needs(lambda self, x, m: self.a(x).masked_fill(m, 0.0), (2, 4), mask), 'in1')
        self.assertEqual(self.needs(lambda self, x, m: torch.where(m, self.a(x), self.b(x)), (2, 4), mask),
                         'in0')
        self.assertEqual(self.needs(lambda self, x: torch.max(self.a(x), 1)[0]), 'out1')
        self.assertEqual(self.needs(lambda self, x: self.a(x).max(1).values), 'out1')
        self.assertEqual(self.needs(lambda self, x: torch.max(self.a(x), self.b(x))), 'in,out')

    def test_pools_and_norms(self):
        for f, needs in ((lambda y: F.max_pool2d(y, 2), 'in'), (lambda y: F.avg_pool2d(y, 2), 'none'),
                         (nn.MaxPool2d(2), 'in'), (lambda y: F.interpolate(y, scale_factor=2), 'none'),
                         (lambda y: F.group_norm(y, 3), 'in'),
                         (lambda y: F.pixel_shuffle(y.repeat(1, 4, 1, 1), 2), 'none'),
                         (lambda y: F.batch_norm(y, torch.zeros(3), torch.ones(3), training=True), 'in'),
                         (lambda y: F.instance_norm(y), 'in')):
            self.assertEqual(last_needs(behind(f, nn.Conv2d(3, 3, 1)), (2, 3, 4, 4)), needs)


class Gradients(unittest.TestCase):
    def test_an_embedding_of_tokens_has_a_gradient_and_its_tokens_have_none(self):
        tokens = torch.empty(2, 3, dtype=torch.int64)
        nodes = nodes_of(net(lambda self, t: self.e(t), e=nn.Embedding(10, 4)), tokens)
        self.assertEqual(nodes, {'t': 'input 48 none -', 'e': 'embedding 96 in 0'})
        nodes = nodes_of(net(lambda self, t: self.e((t + 1) % 10), e=nn.Embedding(10, 4)), tokens)
        self.assertEqual(list(nodes.values())[1:],
                         ['add 48 none 0 grad=no', 'mod 48 none 1 grad=no', 'embedding 96 in 2'])

    def test_what_no_output_needs_is_dropped(self):
        def forward(self, x):
            self.b(x).relu().sum()
            return self.a(x)
        self.assertEqual(list(nodes_of(net(forward, a=linear(), b=linear()), (2, 4))), ['x', 'a'])

    def test_what_gives_no_gradient_gets_none(self):
        def forward(self, x):
            y = self.a(x)
            return y, self.b(y).argmax(1)
        nodes = nodes_of(net(forward, a=linear(), b=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[1:],
                         ['linear 32 in 0', 'linear 32 none 1 grad=no', 'argmax 16 none 2 grad=no keep'])

    def test_a_detached_branch_has_no_gradient(self):
        nodes = nodes_of(net(lambda self, x: self.a(x) + self.b(x).detach() * 2, a=linear(), b=linear()),
                         (2, 4))
        self.assertEqual((nodes['b'], nodes['mul']), ('linear 32 none 0 grad=no', 'mul 32 none 2 grad=no'))

    def test_parameters_alone_are_no_nodes_and_what_is_computed_of_them_is(self):
        module = net(lambda self, x: F.linear(x, self.w) + self.p[:2] + self.buffer,
                     w=nn.Parameter(torch.zeros(4, 4)),
                     p=nn.Parameter(torch.zeros(3, 4)))
        module.register_buffer('buffer', torch.zeros(4))
        self.assertEqual(list(nodes_of(module, (2, 4)).values())[1:],
                         ['linear 32 in 0', 'add 32 none 1', 'add 32 none 2'])
        module = net(lambda self, x: F.linear(x, self.w * self.w), w=nn.Parameter(torch.zeros(4, 4)))
        self.assertEqual(list(nodes_of(module, (2, 4)).values())[1:], ['mul 64 none -', 'linear 32 in0 0,1'])


class Losses(unittest.TestCase):
    labels = torch.empty(2, dtype=torch.int64)

    def test_a_loss_is_added_where_the_module_has_none(self):
        nodes = nodes_of(net(lambda self, x: self.a(x), a=linear()), (2, 4), loss='auto')
        self.assertEqual(list(nodes.items())[2:], [('loss', 'loss 8 in 1')])

    def test_a_loss_of_the_module_is_the_end(self):
        for f in (lambda y, t: F.cross_entropy(y, t), nn.CrossEntropyLoss(reduction='none'),
                  lambda y, t: F.nll_loss(F.log_softmax(y, -1), t)):
            module = net(lambda self, x, t: self.f(self.a(x), t), a=linear(), f=f)
            nodes = list(nodes_of(module, (2, 4), self.labels, loss='auto').values())
            self.assertEqual(nodes[-1].split()[0], 'loss')
            self.assertEqual([n.split()[0] for n in nodes].count('loss'), 1)
            self.assertEqual(nodes[-1].split()[2], 'in')

    def test_an_output_beside_a_loss_is_no_second_end(self):
        def forward(self, x, t):
            y = self.a(x)
            return {'logits': y, 'loss': F.cross_entropy(y, t)}
        nodes = nodes_of(net(forward, a=linear()), (2, 4), self.labels, loss='auto')
        self.assertEqual(list(nodes.values())[2:], ['linear 32 in 0', 'loss 4 in 2,1'])

    def test_a_loss_takes_a_free_name(self):
        module = net(lambda self, x: self.loss(x), loss=linear())
        self.assertEqual(list(nodes_of(module, (2, 4), loss='add'))[1:], ['loss', 'loss_2'])

    def test_a_module_without_parameters_has_no_loss(self):
        with self.assertRaisesRegex(ExportError, 'no output has a gradient'):
            nodes_of(net(lambda self, x: x * 2), (2, 4), loss='add')


class Costs(unittest.TestCase):
    def cost(self, forward, *inputs, **layers):
        return list(costs_of(net(forward, **layers), *inputs).values())[-1]

    def test_products_count_two_per_multiply_add(self):
        image = (2, 4, 6, 6)
        self.assertEqual(self.cost(lambda self, x: self.c(x), image, c=nn.Conv2d(4, 6, 3, groups=2)),
                         (2 * 192 * 18 + 192, 2 * (2 * 192 * 18 + 192)))
        self.assertEqual(self.cost(lambda self, x: F.conv2d(x, self.w, stride=2), image,
                                   w=nn.Parameter(torch.zeros(5, 4, 2, 2))),
                         (2 * 2 * 5 * 9 * 16, 4 * 2 * 5 * 9 * 16))
        self.assertEqual(self.cost(lambda self, x: self.c(x), image, c=nn.ConvTranspose2d(4, 6, 2, 2))[0],
                         2 * 288 * 24 + 1728)
        self.assertEqual(self.cost(lambda self, x: self.c(x), (2, 4, 6), c=nn.Conv1d(4, 5, 3, bias=False))[0],
                         2 * 2 * 5 * 4 * 12)
        self.assertEqual(self.cost(lambda self, x: self.a(x), (2, 3, 4), a=linear()),
                         (2 * 24 * 4 + 24, 4 * 24 * 4 + 48))
        self.assertEqual(self.cost(lambda self, x: self.a(x) @ x.transpose(1, 2), (2, 3, 4), a=linear())[0],
                         2 * 18 * 4)
        self.assertEqual(self.cost(lambda self, x: torch.einsum('bij,bkj->bik', self.a(x), x), (2, 3, 4),
                                   a=linear())[0], 2 * 18 * 4)
        self.assertEqual(self.cost(lambda self, x: torch.addmm(self.w, self.a(x), x.t()), (2, 4), a=linear(),
                                   w=nn.Parameter(torch.zeros(2))), (2 * 4 * 4 + 4, 2 * (2 * 4 * 4 + 4)))

    def test_pools_count_their_window(self):
        image = (2, 4, 6, 6)
        for f, forward in ((lambda y: F.max_pool2d(y, 3, 1), 2 * 4 * 16 * 9),
                           (lambda y: F.avg_pool2d(y, (2, 3)), 2 * 4 * 6 * 6),
                           (lambda y: F.adaptive_avg_pool2d(y, 1), 288),
                           (lambda y: F.adaptive_avg_pool2d(y, (4, 2)), 64 * 6),
                           (lambda y: F.adaptive_max_pool2d(y, 2), 288), (lambda y: y.mean((2, 3)), 288)):
            self.assertEqual(self.cost(lambda self, x: f(self.c(x)), image, c=nn.Conv2d(4, 4, 1)),
                             (forward, forward))

    def test_a_folded_node_sums_its_parts(self):
        self.assertEqual(self.cost(lambda self, x: F.relu_(self.b(x)), (8, 4), b=nn.BatchNorm1d(4)), (64, 96))

    def test_roofline_counts_bytes_where_they_are_more(self):
        def cost(forward, **layers):
            return list(costs_of(net(forward, **layers), (8, 4), cost='roofline').values())[-1]
        self.assertEqual(cost(lambda self, x: self.b(x), b=nn.BatchNorm1d(4)), (24 * 256, 48 * 256))
        self.assertEqual(cost(lambda self, x: self.a(x) + x, a=linear()), (24 * 384, 36 * 384))
        self.assertEqual(cost(lambda self, x: self.a(x), a=linear()), (24 * 320, 48 * 320))

    def test_params_are_written_once(self):
        def forward(self, t): return F.linear(self.e(t), self.e.weight)
        tokens = torch.empty(2, dtype=torch.int64)
        nodes = nodes_of(net(forward, e=nn.Embedding(10, 4)), tokens, params=True)
        self.assertEqual(list(nodes.values())[1:], ['embedding 32 in 0 param=160 wrows=10', 'linear 80 in 1'])
        self.assertNotIn('param', str(nodes_of(net(forward, e=nn.Embedding(10, 4)), tokens)))


def states_of(module, *inputs, **options):
    """The lines of states and what nodes read, with the ids of the file."""
    graph = export(module, [i if isinstance(i, torch.Tensor) else floats(*i) for i in inputs], loss='none', **options)
    words = [line.split() for line in str(graph).split('\n') if line.startswith(('state', 'node'))]
    values = [dict(v.split('=') for v in w if '=' in v) for w in words]
    return ([' '.join(w[1:]) for w in words if w[0] == 'state'],
            {w[2]: ' '.join((v['needs'], v['in'])) for w, v in zip(words, values) if w[0] == 'node'})


class Weights(unittest.TestCase):
    def test_weights_become_states_of_their_optimizer(self):
        module = net(lambda self, x: self.b(self.a(x)), a=linear(), b=linear())     # 4 x 4 and a bias: 80 bytes
        for optimizer, kept in ('sgd', ' upd=40'), ('momentum', ' m=80 upd=80'), ('adamw', ' m=80,80 upd=280'):
            states, nodes = states_of(module, (8, 4), optimizer=optimizer)
            self.assertEqual(states, ['%s %s w=80%s wrows=4' % (name, optimizer, kept) for name in ('1 a.w', '3 b.w')])
            self.assertEqual(nodes, {'x': 'none -', 'a': 'in0 0,1', 'b': 'in 2,3'})     # of a no gradient goes to x
        states, nodes = states_of(module, (8, 4), optimizer='sgd', updates='end')
        self.assertEqual([s.split()[0] for s in states], ['0', '1'])
        self.assertEqual(nodes['b'], 'in 3,1')
        states, _ = states_of(module, (8, 4), optimizer='adamw', cost='roofline')
        self.assertEqual(states[0], '1 a.w adamw w=80 m=80,80 upd=%d wrows=4' % (24 * 80 * 7))

    def test_tied_weights_are_one_state(self):
        def forward(self, t): return F.linear(self.e(t), self.e.weight)
        tokens = torch.empty(2, dtype=torch.int64)
        states, nodes = states_of(net(forward, e=nn.Embedding(10, 4)), tokens, optimizer='sgd')
        self.assertEqual(states, ['1 e.w sgd w=160 upd=80 wrows=10'])
        self.assertEqual(list(nodes.values()), ['none -', 'in0 0,1', 'in 2,1'])

    def test_frozen_weights_and_statistics_are_states_without_update(self):
        module = net(lambda self, x: self.b(self.n(self.a(x))), a=linear(), n=nn.BatchNorm1d(4), b=linear())
        module.b.requires_grad_(False)
        module.b.bias.requires_grad_(True)
        states, nodes = states_of(module, (8, 4), optimizer='momentum')
        self.assertEqual([s.split(' ', 1)[1] for s in states],
                         ['a.w momentum w=80 m=80 upd=80 wrows=4', 'n.w momentum w=32 m=32 upd=32', 'n.stat stat w=32 stat',
                          'b.frozen frozen w=64 frozen', 'b.w momentum w=16 m=16 upd=16 wrows=4'])
        self.assertEqual(nodes['n'], 'in0,in1 2,3,4')
        states, _ = states_of(module.eval(), (8, 4), optimizer='momentum')
        self.assertNotIn('n.stat stat w=32 stat', [s.split(' ', 1)[1] for s in states])


def rows_of(module, *inputs, **options):
    """{state: rows}, of those that have some"""
    states, _ = states_of(module, *inputs, **dict(optimizer='sgd', **options))
    values = {s.split()[1]: dict(v.split('=') for v in s.split()[3:] if '=' in v) for s in states}
    return {name: (int(v['wrows']), int(v['w'])) for name, v in values.items() if 'wrows' in v}


class Rows(unittest.TestCase):
    def test_a_row_is_an_output_with_its_bias(self):
        for bias in (True, False):
            self.assertEqual(rows_of(net(lambda self, x: self.a(x), a=nn.Linear(4, 6, bias=bias)), (2, 4)),
                             {'a.w': (6, 96 + 24 * bias)})
            for conv, image in ((nn.Conv1d, (2, 4, 8)), (nn.Conv2d, (2, 4, 8, 8)), (nn.Conv3d, (2, 4, 8, 8, 8))):
                rank = len(image) - 2
                self.assertEqual(rows_of(net(lambda self, x: self.c(x), c=conv(4, 6, 3, groups=2, bias=bias)), image),
                                 {'c.w': (6, 4 * (6 * 2 * 3 ** rank + 6 * bias))})
        tokens = torch.empty(2, dtype=torch.int64)
        self.assertEqual(rows_of(net(lambda self, t: self.e(t), e=nn.Embedding(10, 4)), tokens), {'e.w': (10, 160)})
        self.assertEqual(rows_of(net(lambda self, x: F.relu_(self.a(x)), a=linear()), (2, 4)), {'a.w': (4, 80)})

    def test_functions_say_which_argument_is_the_weight(self):
        w, b = nn.Parameter(torch.zeros(6, 4)), nn.Parameter(torch.zeros(6))
        self.assertEqual(rows_of(net(lambda self, x: F.linear(x, self.w, self.b), w=w, b=b), (2, 4)), {'linear.w': (6, 120)})
        self.assertEqual(rows_of(net(lambda self, x: F.linear(x, bias=self.b, weight=self.w), w=w, b=b), (2, 4)),
                         {'linear.w': (6, 120)})
        self.assertEqual(rows_of(net(lambda self, x: F.linear(self.w, x), w=w), (2, 4)), {})
        self.assertEqual(rows_of(net(lambda self, x: F.linear(self.w, self.w) + x, w=w), (6, 6)), {})

    def test_what_has_no_row_for_each_output_has_none(self):
        image = (2, 4, 8, 8)
        for layer in (nn.BatchNorm2d(4), nn.ConvTranspose2d(4, 6, 3, bias=False), nn.PReLU(4), nn.GroupNorm(2, 4), nn.Conv2d(4, 1, 3)):
            self.assertEqual(rows_of(net(lambda self, x: self.l(x), l=layer), image), {})
        tied = net(lambda self, t: self.e(t) * self.e.weight.sum(), e=nn.Embedding(10, 4))      # the sum has no rows
        self.assertEqual(rows_of(tied, torch.empty(2, dtype=torch.int64)), {})
        frozen = linear()
        frozen.requires_grad_(False)
        self.assertEqual(rows_of(net(lambda self, x: self.b(self.a(x)), a=frozen, b=linear()), (2, 4)), {'b.w': (4, 80)})

    def test_weights_of_other_sizes_have_none_together(self):
        w, b = nn.Parameter(torch.zeros(6, 4)), nn.Parameter(torch.zeros(1))        # a bias for all outputs
        self.assertEqual(rows_of(net(lambda self, x: F.linear(x, self.w, self.b), w=w, b=b), (2, 4)), {})
        module = linear()
        module.scale = nn.Parameter(torch.zeros(3))     # a parameter of the same node, of which the op knows nothing
        self.assertEqual(rows_of(net(lambda self, x: self.a(x), a=module), (2, 4)), {})


class Composites(unittest.TestCase):
    def test_several_outputs_are_one_node(self):
        nodes = nodes_of(net(lambda self, x: torch.split_copy(self.a(x), 2, 1)[1] * 2, a=linear()), (3, 4))
        self.assertEqual(list(nodes.values())[2:], ['copy 24,24 none 1', 'mul 24 none 2.1'])

    def test_attention_modules_are_their_ops(self):
        module = net(lambda self, x: self.m(x, x, x)[0], m=nn.MultiheadAttention(8, 2, batch_first=True))
        nodes = nodes_of(module, (3, 5, 8))
        self.assertEqual(nodes, {
            'x': 'input 480 none -', 'm_qkv': 'linear 1440 in 0', 'm_qk': 'bmm 600 in 1',
            'm_softmax': 'softmax 600 out 2',
            'm_av': 'bmm 480 in 3,1', 'm_proj': 'linear 480 in 4'})
        module = net(lambda self, x, y: self.m(x, y, y), m=nn.MultiheadAttention(8, 2, dropout=0.1))
        nodes = nodes_of(module, (5, 3, 8), (7, 3, 8))
        self.assertEqual([n.split()[0] for n in nodes.values()],
                         ['input', 'input', 'linear', 'linear', 'linear', 'bmm',
                                                                 'softmax', 'dropout', 'bmm', 'linear', 'mean'])
        self.assertEqual(nodes['m_qk'], 'bmm 840 in 2,3')

    def test_attention_modules_without_weights_are_fused_where_pytorch_fuses_them(self):
        module = net(lambda self, x: self.m(x, x, x, need_weights=False)[0],
                     m=nn.MultiheadAttention(8, 2, batch_first=True))
        nodes = nodes_of(module, (3, 5, 8))
        fused = {'m_qkv': 'linear 1440 in 0', 'm_attention': 'attention 480 in,out 1 saved=120',
                 'm_proj': 'linear 480 in 2'}
        if hasattr(F, 'scaled_dot_product_attention'): self.assertEqual({**nodes, 'x': 0}, {**fused, 'x': 0})
        else: self.assertIn('m_softmax', nodes)

    def test_costs_of_attention_are_those_of_its_ops(self):
        costs = costs_of(net(lambda self, x: self.m(x, x, x)[0],
                             m=nn.MultiheadAttention(8, 2, batch_first=True)), (3, 5, 8))
        self.assertEqual(costs['m_qkv'], (15 * 24 * 17, 2 * 15 * 24 * 17))
        self.assertEqual(costs['m_qk'], (2 * 150 * 4, 4 * 150 * 4))
        self.assertEqual(costs['m_proj'], (15 * 8 * 17, 2 * 15 * 8 * 17))

    def test_fused_attention_is_one_node_that_saves_a_number_a_row(self):
        module = net(lambda self, x: scaled_dot_product_attention(self.a(x), self.a(x), x), a=linear())
        nodes = nodes_of(module, (2, 3, 5, 4))
        self.assertEqual(list(nodes.values())[-1], 'attention 480 in,out 1,2,0 saved=120')
        self.assertEqual(list(costs_of(module, (2, 3, 5, 4)).values())[-1],
                         (2 * 150 * 8 + 150, 2 * (2 * 150 * 8 + 150)))

    def test_transformer_layers_of_torch_are_looked_into(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        nodes = nodes_of(net(lambda self, x: self.l(x), l=layer), (3, 5, 8))
        fused = hasattr(F, 'scaled_dot_product_attention')
        attention = ['attention'] if fused else ['bmm', 'softmax', 'dropout', 'bmm']
        self.assertEqual([n.split()[0] for n in nodes.values()],
                         ['input', 'linear', *attention, 'linear', 'dropout', 'add', 'layernorm', 'linear', 'relu',
                          'dropout', 'linear', 'dropout', 'add', 'layernorm'])

    def test_control_flow_on_shapes_is_followed(self):
        def forward(self, x):
            if x.dim() == 2 and len(x) > 1 and x.shape[-1] == 4: x = self.a(x)
            for row in x: x = x + row.sum() * x.size(0)
            assert x.numel() == 8
            return x
        self.assertEqual(len(nodes_of(net(forward, a=linear()), (2, 4))), 2 + 2 * 3)

    def test_inputs_by_name_leave_the_others_at_their_defaults(self):
        module = net(lambda self, x, y=None, z=2: self.a(x) if y is None else self.a(x) + y * z, a=linear())
        graph = export(module, {'x': floats(2, 4), 'y': floats(2, 4)}, loss='none')
        self.assertEqual([n.name for n in graph.nodes], ['x', 'y', 'a', 'mul', 'add'])
        self.assertEqual([n.name for n in export(module, floats(2, 4), loss='none').nodes], ['x', 'a'])

    def test_neither_the_module_nor_the_inputs_are_changed(self):
        module = net(lambda self, x: self.b(x), b=nn.BatchNorm1d(4))
        x, before = torch.rand(8, 4), {k: v.clone() for k, v in module.state_dict().items()}
        export(module, x)
        for key, value in module.state_dict().items(): self.assertTrue(torch.equal(value, before[key]))
        self.assertEqual((x._version, module.b.weight.device.type), (0, 'cpu'))


    def test_wrapped_functions_and_named_tuples_are_looked_into(self):
        pair = collections.namedtuple('Pair', 'first second')
        def forward(self, x):
            both = pair(self.a(x), wrapped(self.a(x), 2))
            return pair(both.first + both.second, second=None)
        nodes = nodes_of(net(forward, a=linear()), (2, 4))
        self.assertEqual(list(nodes), ['x', 'a', 'a_1', 'mul', 'add'])

    def test_no_grad_is_followed(self):
        def forward(self, x):
            with torch.no_grad(): y = self.a(x)
            return self.b(y)
        nodes = nodes_of(net(forward, a=linear(), b=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[1:], ['linear 32 none 0 grad=no', 'linear 32 in 1'])


    def test_a_custom_function_passes_the_gradient_and_reads_what_it_saves(self):
        before = vars(torch.autograd.Function).get('apply')
        cases = [(SavesInput, 'SavesInput 32 in 1'), (SavesOutput, 'SavesOutput 32 out 1'), (SavesNothing, 'SavesNothing 32 none 1'),
                 (SavesOther, 'SavesOther 32 none 1 saved=16'), (relu, 'relu 32 in 1')]
        for function, line in cases:
            module = net(lambda self, x: self.b(function.apply(self.a(x))), a=linear(), b=linear())
            with self.assertRaisesRegex(ExportError, "^node '.*': the autograd.Function %s is not known; --unknown elementwise "
                                        "counts it as 1 per element, its backward as reading what it saves$" % function.__name__):
                nodes_of(module, (2, 4))
            nodes = list(nodes_of(module, (2, 4), unknown='elementwise').values())
            self.assertEqual(nodes[1:], ['linear 32 in 0', line, 'linear 32 in 2'])
        frozen = net(lambda self, x: self.b(SavesInput.apply(x)), b=linear())
        self.assertEqual(list(nodes_of(frozen, (2, 4), unknown='elementwise').values())[1], 'SavesInput 32 none 0 grad=no')
        self.assertIs(vars(torch.autograd.Function).get('apply'), before)

    def test_checkpointed_functions_are_looked_into(self):
        from torch.utils.checkpoint import checkpoint
        plain = net(lambda self, x: torch.relu(self.b(self.a(x))), a=linear(), b=linear())
        for reentrant in (True, False):
            cut = net(lambda self, x: checkpoint(lambda y: torch.relu(self.b(y)), self.a(x), use_reentrant=reentrant), a=linear(), b=linear())
            self.assertEqual(nodes_of(cut, (2, 4)), nodes_of(plain, (2, 4)))


class SavesInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x.sigmoid()
    @staticmethod
    def backward(ctx, grad): return grad


class SavesOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y
    @staticmethod
    def backward(ctx, grad): return grad


class SavesNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return 2 * x
    @staticmethod
    def backward(ctx, grad): return grad


class SavesOther(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.half = x[:, :2] + 1
        return 2 * x
    @staticmethod
    def backward(ctx, grad): return grad


class relu(torch.autograd.Function):        # named as an op that is known
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.relu()
    @staticmethod
    def backward(ctx, grad): return grad


class Inception(nn.Module):
    """Branches behind one tensor: pools of other positions, norms, activations in place, a concatenation."""

    def __init__(self):
        super().__init__()
        def block(given, width, size):
            return nn.Sequential(nn.Conv2d(given, width, size, 1, size // 2), nn.BatchNorm2d(width), nn.ReLU(True))
        self.stem, self.one = block(3, 8, 3), block(8, 8, 1)
        self.two, self.three = nn.Sequential(block(8, 4, 1), block(4, 8, 3)), block(8, 8, 1)
        self.pool, self.last = nn.MaxPool2d(3, 1, 1), nn.Linear(24, 10)

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([self.one(x), self.two(x), self.three(self.pool(x))], 1)
        return self.last(F.avg_pool2d(x, 8).flatten(1))


def select(self, x):
    y = self.a(x)
    chosen = y > 0
    z = torch.where(chosen, y, torch.zeros_like(y)).masked_fill(y > 1, 1.0)
    values, where = z.topk(2, -1)
    return (values * y.gather(-1, where)).sum(-1) + z.std(-1)


def held_by_autograd(module, inputs):
    """Bytes that PyTorch keeps for the backward on the CPU, without parameters and inputs."""
    found, alive = {}, []
    own = {storage_of(t) for t in [*module.parameters(), *module.buffers(), *inputs]}

    def pack(tensor):
        storage = tensor.untyped_storage() if hasattr(tensor, 'untyped_storage') else tensor.storage()
        if storage_of(tensor) not in own: found[storage_of(tensor)] = storage.nbytes()
        alive.append(tensor)
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        module(*inputs).pow(2).sum()
    return sum(found.values())


class Kept(unittest.TestCase):
    """What PyTorch keeps, beside what a backward has to read."""

    def modules(self):
        yield 'selections', net(select, a=nn.Linear(64, 64)), torch.randn(128, 64)
        yield 'inception', Inception(), torch.randn(4, 3, 8, 8)
        layers = [nn.Conv2d(3, 16, 3, 1, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 8)]
        yield 'norm and pool', nn.Sequential(*layers), torch.randn(8, 3, 8, 8)
        yield 'gelu', nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)), torch.randn(64, 32)
        yield 'convolutions', nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.Tanh()), torch.randn(4, 3, 12, 12)
        for weights in (False, True):
            attention = net(lambda self, x: self.o(self.m(x, x, x, need_weights=self.w)[0]), w=weights, o=nn.Linear(32, 8),
                            m=nn.MultiheadAttention(32, 4, batch_first=True))
            yield 'attention, weights %d' % weights, attention, torch.randn(2, 64, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        yield 'encoder', nn.TransformerEncoder(layer, 3), torch.randn(2, 64, 32)

    def test_what_autograd_keeps_is_within_one_percent(self):
        for name, module, x in self.modules():
            module.train()
            graph = export(module, (x,), needs='autograd')
            share = kept_bytes(graph.nodes, False) / held_by_autograd(module, (x,))
            self.assertLess(abs(share - 1), 0.01, '%s: %.4f' % (name, share))

    def test_where_autograd_keeps_something_else_the_file_says_so(self):
        modules = {name: (module, x) for name, module, x in self.modules()}
        for name, op in (('selections', 'gather'), ('inception', 'maxpool'), ('norm and pool', 'maxpool')):
            module, x = modules[name]
            second = str(export(module, (x,))).split('\n')[1]
            self.assertRegex(second, r'; PyTorch keeps 1\.\d+ x what these backwards read \(.*%s.*\): --needs autograd$' % op)
            self.assertNotIn('PyTorch keeps', str(export(module, (x,), needs='autograd')))
        self.assertNotIn('PyTorch keeps', str(export(*modules['convolutions'])))


class Refused(unittest.TestCase):
    def test_autocast_is_refused_in_every_form(self):
        def block(self, x):
            with torch.autocast(self.kind, dtype=torch.bfloat16): return self.a(x)
        decorated = torch.autocast('cpu', dtype=torch.bfloat16)(lambda self, x: self.a(x))
        for module in (net(block, a=linear(), kind='cpu'), net(block, a=linear(), kind='cuda'),
                       net(lambda self, x: self.b(x), b=net(decorated, a=linear()))):
            with self.assertRaisesRegex(ExportError, '^the module runs under torch.autocast, whose types are not'):
                export(module, (floats(2, 4),))
        with torch.autocast('cpu', dtype=torch.bfloat16), self.assertRaisesRegex(ExportError, 'torch.autocast'):
            export(linear(), (floats(2, 4),))
        def off(self, x):
            with torch.autocast('cpu', enabled=False): return self.a(x)
        self.assertEqual(list(nodes_of(net(off, a=linear()), (2, 4))), ['x', 'a'])
        self.assertEqual(torch.autocast('cpu', enabled=False)._enabled, False)      # as it was before

    def test_a_version_that_is_not_served_is_named(self):
        with unittest.mock.patch.object(torch, '__version__', '1.12.1+cpu'):
            with self.assertRaisesRegex(ExportError, r'^PyTorch 1\.12\.1\+cpu is not served: 1\.13 to 2\.15 are$'):
                export(linear(), (floats(2, 4),))
            with self.assertRaises(SystemExit) as raised: main(['--model', 'mlp8'])
            self.assertTrue(raised.exception.code.startswith('export_torch: PyTorch 1.12.1+cpu is not served: '))
        def changed(self, *arguments): raise AttributeError('trace has changed')
        with unittest.mock.patch.object(torch.fx.Tracer, 'trace', changed), \
                unittest.mock.patch.object(torch, '__version__', '9.1.0'):
            with self.assertRaisesRegex(ExportError, r'^PyTorch 9\.1\.0 is not served: 1\.13 to 2\.15 are$'):
                export(linear(), (floats(2, 4),))


@torch.fx.wrap
def wrapped(x, factor): return x * factor


@torch.fx.wrap
def scaled_dot_product_attention(query, key, value):        # as in torch.nn.functional from 2.0 on
    return torch.softmax(query @ key.transpose(-2, -1), -1) @ value


class Errors(unittest.TestCase):
    def test_an_unknown_op_is_named_with_its_node(self):
        module = net(lambda self, x: torch.lgamma(self.a(x)), a=linear())
        with self.assertRaisesRegex(ExportError,
                                    "^node 'lgamma': the op lgamma is not known; --unknown elementwise"):
            nodes_of(module, (2, 4))
        self.assertEqual(nodes_of(module, (2, 4), unknown='elementwise')['lgamma'], 'lgamma 32 in,out 1')

    def test_an_unknown_module_is_named_by_its_class(self):
        module = net(lambda self, x: self.l(x)[0], l=nn.LSTM(4, 4))
        with self.assertRaisesRegex(ExportError, "^node 'l': the op LSTM is not known"):
            nodes_of(module, (2, 3, 4))

    def test_control_flow_on_values_is_one_sentence(self):
        module = net(lambda self, x: x if self.a(x).sum() > 0 else -x, a=linear())
        with self.assertRaisesRegex(ExportError,
                                    "^after node 'gt': torch.fx cannot trace the module: symbolically traced"):
            nodes_of(module, (2, 4))

    def test_wrong_shapes_are_one_sentence(self):
        with self.assertRaisesRegex(ExportError, "^node 'a': linear does not run on shapes alone: "):
            nodes_of(net(lambda self, x: self.a(x), a=linear()), (2, 5))

    def test_values_are_one_sentence(self):
        with self.assertRaisesRegex(ExportError, "^node 'item': item does not run on shapes alone: "):
            nodes_of(net(lambda self, x: self.a(x) * self.a(x).sum().item(), a=linear()), (2, 4))

    def test_writing_into_a_tensor_made_from_nothing_is_refused(self):
        def forward(self, x):
            y = torch.zeros(2, 4)
            y[:, 0] = self.a(x)[:, 1]
            return y
        with self.assertRaisesRegex(ExportError,
                                    "^node 'setitem.*: setitem writes into a tensor that forward made"):
            nodes_of(net(forward, a=linear()), (2, 4))
        def forward_followed(self, x):
            y = x.new_zeros(2, 4)
            y[:, 0] = self.a(x)[:, 1]
            return y
        nodes = nodes_of(net(forward_followed, a=linear()), (2, 4))
        self.assertEqual(list(nodes.values())[1:],
                         ['new_zeros 32 none - grad=no', 'linear 32 in 0', 'setitem 32 none 1,2'])

    def test_too_many_inputs_are_one_sentence(self):
        with self.assertRaisesRegex(ExportError, 'torch.fx cannot trace the module: .*positional argument'):
            nodes_of(net(lambda self, x: self.a(x), a=linear()), (2, 4), (2, 4))

    def test_no_result_is_one_sentence(self):
        for forward in (lambda self, x: None, lambda self, x: 3, lambda self, x: self.p):
            with self.assertRaisesRegex(ExportError, 'returns no tensor'):
                nodes_of(net(forward, p=nn.Parameter(torch.zeros(1))), (2, 4))


class CommandLine(unittest.TestCase):
    def output_of(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as output: main(arguments)
        return output.getvalue()

    def test_a_graph_goes_to_a_file_or_to_standard_output(self):
        arguments = ['--model', 'mlp8', '--batch', '2']
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'net.tlg')
            self.assertEqual(self.output_of(*arguments, '-o', path), '')
            with open(path, encoding='ascii') as file: text = file.read()
        self.assertTrue(text.startswith('tlg 2\n# mlp8 of 2x784 float32; costs in FLOP\nnode 0 x input '))
        done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, text))

    def test_a_module_comes_from_a_file_or_a_package(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'mine.py')
            with open(path, 'w', encoding='ascii') as file:
                file.write('from torch import nn\ndef make(): return nn.Linear(4, 2)\n')
            self.assertIn('linear fwd=54 bwd=108 out=24',
                          self.output_of('--model', path + ':make', '--batch', '3', '--input', '4'))
        text = self.output_of('--model', 'torch.nn:Softsign', '--batch', '3', '--input', '4:float16')
        self.assertIn('node 1 softsign softsign fwd=12 bwd=0 out=24 needs=none in=0 grad=no keep', text)

    def test_evaluation_has_no_dropout(self):
        text = self.output_of('--model', 'torch.nn:Dropout', '--input', '4')
        self.assertIn(' dropout ', text)
        with self.assertRaisesRegex(SystemExit, 'returns no tensor'):
            self.output_of('--model', 'torch.nn:Dropout', '--input', '4', '--eval')

    def test_mistakes_are_one_line_and_a_status(self):
        for arguments, line in (
                (['--model', 'nothing'], '--model nothing: there is none; resnet18, '),
                (['--model', 'no.module:x'], "--model no.module:x: No module named 'no'"),
                (['--model', 'torch.nn:Nothing'], '--model torch.nn:Nothing: module '),
                (['--model', 'torch:zeros_like'], '--model torch:zeros_like: '),
                (['--model', 'os:getcwd'], '--model os:getcwd: gives no torch.nn.Module'),
                (['--model', 'torch.nn:Identity'], '--input: needed for torch.nn:Identity'),
                (['--model', 'mlp8', '--input', '7x'], '--input 7x: must be sizes like'),
                (['--model', 'mlp8', '--input', '784:int99'], '--input 784:int99: must be sizes like'),
                (['--model', 'mlp8', '--input', '0'], '--input 0: must be sizes like'),
                (['--model', 'mlp8', '--batch', '0'], '--batch: must be > 0'),
                (['--model', 'mlp8', '-o', '/nowhere/x.tlg'], '[Errno 2] No such file')):
            with self.assertRaises(SystemExit) as raised: self.output_of(*arguments)
            self.assertTrue(raised.exception.code.startswith('export_torch: ' + line), raised.exception.code)
            self.assertNotIn('\n', raised.exception.code)
        done = subprocess.run([sys.executable, PROGRAM, '--model', 'nothing'], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count('\n')), (1, '', 1))

    def test_help_says_what_there_is(self):
        with contextlib.redirect_stdout(io.StringIO()) as output, self.assertRaises(SystemExit) as raised:
            main(['--help'])
        self.assertEqual(raised.exception.code, 0)
        for word in ('--unknown', '--cost', 'grad=no', 'tensors of the meta'):
            self.assertIn(word, output.getvalue())


class Result(unittest.TextTestResult):
    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print('SKIPPED %s: %s' % (test.id().split('.')[-1], reason))


if __name__ == '__main__':
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=Result, verbosity=0))
