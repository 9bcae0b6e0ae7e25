#!/usr/bin/env python3
"""test_importers.py [CLASS.TEST...]   examples/import_tflite.py, flatbuffer.py and tiny_model.py: files, rules, damage

Plain Python 3, with tl_plan and tl_pack built. What the files compute is compared with TFLM and ONNX Runtime by make
tiny-check.
"""
import contextlib, io, json, os, random, struct, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(HERE, 'tiny'), os.path.join(HERE, '..', 'examples')]
BUILD = os.path.join(HERE, '..', os.environ.get('B', 'build'))
TL_PLAN, TL_PACK = os.path.join(BUILD, 'tl_plan'), os.path.join(BUILD, 'tl_pack')
DATA = os.path.join(HERE, 'data', 'tiny')
SUFFIXES = '.tlg', '.safetensors', '.ranges'

import import_tflite
import lite_nets
import tiny_model
from damage import damage_bytes
from flatbuffer import Damaged, Writer, read_root
from lite_nets import Lite
from tiny_model import Data, Node, Refused, floats


def import_bytes(data, folder):
    """The exit code, what stderr got, and the prefix of the files."""
    path, prefix, errors = os.path.join(folder, 'net.tflite'), os.path.join(folder, 'out'), io.StringIO()
    with open(path, 'wb') as file: file.write(data)
    for suffix in SUFFIXES:
        if os.path.exists(prefix + suffix): os.remove(prefix + suffix)
    with contextlib.redirect_stderr(errors): code = import_tflite.main([path, '-o', prefix])
    return code, errors.getvalue().replace(path, 'net.tflite'), prefix


def read_files(prefix):
    made = []
    for suffix in SUFFIXES:
        with open(prefix + suffix, 'rb') as file: made.append(file.read())
    return made


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = self.temporary.name
        self.addCleanup(self.temporary.cleanup)

    def nodes_of(self, net):
        return import_tflite.import_model(import_tflite.load(net.write()))

    def refusal(self, net):
        """The sentence with which a model is refused; nothing is written then."""
        code, text, prefix = import_bytes(net if isinstance(net, bytes) else net.write(), self.folder)
        self.assertEqual((code, text.count('\n')), (1, 1), text)
        self.assertFalse([s for s in SUFFIXES if os.path.exists(prefix + s)])
        return text.rstrip('\n').replace('import_tflite: net.tflite: ', '', 1)


class Files(Case):
    def test_samples_are_what_the_importer_writes_today(self):
        for name, net in (('kws_int8', lite_nets.kws_floats()), ('exact_int8', lite_nets.exact())):
            code, text, prefix = import_bytes(net.write(), self.folder)
            self.assertEqual((code, text), (0, ''))
            self.assertEqual(read_files(prefix), read_files(os.path.join(DATA, name)), name)

    def test_what_is_written_is_said(self):
        for net, text in ((lite_nets.kws_floats(), '7 nodes, 12 constants of 840 bytes, a range or a scale for every tensor'),
                          (lite_nets.joined(True), 'no range for any tensor (--calibrate measures them), so f32 alone')):
            with contextlib.redirect_stdout(io.StringIO()) as said: _, _, prefix = import_bytes(net.write(), self.folder)
            self.assertEqual(said.getvalue().split(': ')[0], ', '.join(prefix + suffix for suffix in SUFFIXES))
            self.assertIn(text, said.getvalue())
            self.assertEqual(said.getvalue().count('\n'), 1)
        nodes = [Node('input', 'x', [], (4,), low=0, high=1), Node('relu', 'y', [], (4,))]
        self.assertEqual(tiny_model.describe(nodes), '2 nodes, 0 constants of 0 bytes, no range for 1 of 2 tensors, as y (--calibrate measures them), so f32 alone')

    def test_hash_is_fnv_1a(self):
        nodes = [Node('input', 'ab', [], (1,)), Node('relu', 'c', [], (2,))]
        value = 0xcbf29ce484222325
        for byte in b'ab input 4\nc relu 8\n': value = (value ^ byte) * 0x100000001b3 & (1 << 64) - 1
        self.assertEqual(tiny_model.hash_graph(nodes), '%016x' % value)
        nodes[0].name, nodes[0].op, nodes[1].name, nodes[1].op = 'a', 'b', 'c', 'd'
        self.assertNotEqual(tiny_model.hash_graph(nodes), '%016x' % value)

    def test_safetensors_have_no_holes(self):
        raw = tiny_model.write_safetensors({'a.weights': floats((2, 3), range(6)), 'b': Data('I8', (3,), b'abc'),
                                            'c': tiny_model.integers((1,), [-7])})
        size = struct.unpack('<Q', raw[:8])[0]
        header, body, end = json.loads(raw[8:8 + size]), raw[8 + size:], 0
        self.assertEqual(size % 8, 0)
        for entry in header.values():
            self.assertEqual(entry['data_offsets'][0], end)
            end = entry['data_offsets'][1]
        self.assertEqual(end, len(body))
        self.assertEqual(header['a.weights'], {'dtype': 'F32', 'shape': [2, 3], 'data_offsets': [0, 24]})
        self.assertEqual(struct.unpack('<6f3si', body), (0, 1, 2, 3, 4, 5, b'abc', -7))

    def test_every_network_is_planned_with_and_without_rows(self):
        nets = [f(is_float=kind) for f in (*lite_nets.NETS.values(), lite_nets.exact, lite_nets.curves) for kind in (0, 1)]
        for net in nets + [lite_nets.kws_floats()]:
            code, text, prefix = import_bytes(net.write(), self.folder)
            self.assertEqual((code, text), (0, ''))
            for more in ([], ['--rows']):
                done = subprocess.run([TL_PLAN, prefix + '.tlg', '--inference', *more], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_rows_of_a_mobilenet_form_a_region(self):
        _, _, prefix = import_bytes(lite_nets.mobilenet().write(), self.folder)
        text = subprocess.run([TL_PLAN, prefix + '.tlg', '--inference', '--rows'], capture_output=True, text=True).stdout
        self.assertRegex(text, r'\n[1-9][0-9]* regions? of rows: live bytes [0-9]+ instead of 221184')

    def test_weights_with_a_scale_for_each_channel_stay_so(self):
        """One scale for all takes fewer constants, and cannot be had of a model in 8 bits."""
        for name, some in (('kws_int8', 4), ('exact_int8', 5)):
            prefix, made = os.path.join(DATA, name), os.path.join(self.folder, 'plan.json')
            done = subprocess.run([TL_PLAN, prefix + '.tlg', '--inference', '--inputs-die', '--precision', 'loss=1e9,objective=bytes,sensitive,any-result,'
                                   'schemes=i8+i8-channel,inputs=i8', '--weights', prefix + '.safetensors', '--ranges', prefix + '.ranges', '--kernels', 'own',
                                   '--c-code', 'net', '-o', self.folder, '--json', made], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            with open(made) as file: rows = json.load(file)['precision']['nodes']
            self.assertEqual([row['scheme'] for row in rows if row['op'] in tiny_model.WEIGHTED], ['i8-channel'] * some)

    def test_generated_code_joins_vectors(self):
        """Along their one axis, images as they lie."""
        for is_float, scheme in ((False, 'i8-channel+i8'), (True, 'f32')):
            code, text, prefix = import_bytes(lite_nets.joined(is_float).write(), self.folder)
            done = subprocess.run([TL_PLAN, prefix + '.tlg', '--inference', '--inputs-die', '--precision', 'loss=1e9,objective=bytes,sensitive,any-result,'
                                   'schemes=' + scheme, '--weights', prefix + '.safetensors', '--ranges', prefix + '.ranges', '--kernels', 'own',
                                   '--c-code', 'net', '-o', self.folder], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ''))
            with open(os.path.join(self.folder, 'net_kernels.c')) as file: text = file.read()
            if is_float: self.assertIn('{ 1, 1, 151, 3, { { 120, 0 }, { 4, 120 }, { 27, 124 } } }', text)
            else: self.assertRegex(text, r'\{ 1, 1, 156, 2, \{ \{ 151, 0, .*\}, \{ 5, 151, ')

    def test_names_become_legal_and_stay_apart(self):
        nodes = [Node('relu', name, [], (1,)) for name in ('a b', 'a_b', 'a=b', '', 'ä/1:x;y', 'n#"\\\x00', 'x' * 300, 'x' * 300)]
        tiny_model.make_names(nodes)
        names = [node.name for node in nodes]
        self.assertEqual(names[:6], ['a_b', 'a_b_2', 'a_b_3', 'n', 'ä/1:x;y', 'n____'])
        self.assertEqual(len(set(names)), 8)
        self.assertLessEqual(max(len(name.encode()) for name in names), 255)

    def test_nothing_is_written_where_a_file_cannot_be(self):
        path = os.path.join(self.folder, 'net.tflite')
        with open(path, 'wb') as file: file.write(lite_nets.kws_floats().write())
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            self.assertEqual(import_tflite.main([path, '-o', os.path.join(self.folder, 'none', 'x')]), 1)
            self.assertEqual(import_tflite.main([path + '.none']), 1)
        none = os.path.join(self.folder, 'none', 'x.tlg')
        self.assertEqual(errors.getvalue(), 'import_tflite: %s: cannot be written: No such file or directory\n'
                                            'import_tflite: %s.none: No such file or directory\n' % (none, path))

    def test_a_sentence_begins_with_the_file_that_is_wrong(self):
        def said(work):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors): self.assertEqual(tiny_model.run('program', 'model', work), 1)
            return errors.getvalue()
        def refuse(error): raise error
        none = os.path.join(self.folder, 'none')
        for work, sentence in ((lambda: refuse(Refused('is wrong')), 'model: is wrong'), (lambda: open(none), none + ': No such file or directory'),
                               (lambda: tiny_model.read_files(none), none + '.tlg: No such file or directory'),
                               (lambda: tiny_model.fail_line('a.tlg', 3, 'why'), 'a.tlg: line 3: why'), (lambda: refuse(OSError('strange')), 'model: strange'),
                               (lambda: tiny_model.write_file(self.folder, b''), self.folder + ': cannot be written: Is a directory')):
            self.assertEqual(said(work), 'program: %s\n' % sentence)

    def test_a_file_above_2_gib_is_refused(self):
        path, errors = os.path.join(self.folder, 'large.tflite'), io.StringIO()
        with open(path, 'wb') as file: file.truncate(2**31)
        with contextlib.redirect_stderr(errors): self.assertEqual(import_tflite.main([path]), 1)
        self.assertEqual(errors.getvalue(), 'import_tflite: %s: is larger than 2 GiB\n' % path)


class Folding(Case):
    def chain(self, *ops):
        """Nodes in a row on an image of 8 x 8 x 2, by (op, geometry)."""
        nodes = [Node('input', 'x', [], (8, 8, 2))]
        for k, (op, geometry) in enumerate(ops):
            nodes.append(Node(op, 'n%d' % k, [nodes[-1]], geometry.pop('shape', nodes[-1].shape), **geometry))
        nodes[-1].keep = True
        return nodes

    def names(self, nodes): return [node.op + ('+' + node.act if node.act != 'none' else '') for node in tiny_model.fold(nodes)]

    def test_an_activation_goes_into_what_is_before_it(self):
        for op in tiny_model.TAKES_ACTIVATION:
            self.assertEqual(self.names(self.chain((op, {}), ('relu6', {}))), ['input', op + '+relu6'])
        self.assertEqual(self.names(self.chain(('concat', {}), ('relu', {}))), ['input', 'concat', 'relu'])
        self.assertEqual(self.names(self.chain(('conv2d', {}), ('relu', {}), ('relu6', {}))), ['input', 'conv2d+relu', 'relu6'])

    def test_an_activation_stays_where_somebody_else_reads(self):
        nodes = self.chain(('conv2d', {}), ('relu', {}))
        nodes.append(Node('add', 'sum', nodes[1:3], nodes[1].shape, keep=True))
        self.assertEqual(self.names(nodes), ['input', 'conv2d', 'relu', 'add'])
        nodes = self.chain(('conv2d', {'keep': True}), ('relu', {}))
        self.assertEqual(self.names(nodes), ['input', 'conv2d', 'relu'])

    def test_an_activation_stays_where_scales_differ(self):
        one, other = {'scale': 0.5, 'zero': 0}, {'scale': 0.25, 'zero': -128}
        self.assertEqual(self.names(self.chain(('conv2d', dict(one)), ('relu', dict(other)))), ['input', 'conv2d', 'relu'])
        self.assertEqual(self.names(self.chain(('conv2d', dict(one)), ('relu', dict(one)))), ['input', 'conv2d+relu'])
        nodes = tiny_model.fold(self.chain(('conv2d', {}), ('relu', dict(other))))
        self.assertEqual((len(nodes), nodes[1].scale, nodes[1].zero), (2, 0.25, -128))

    def pad(self, op, before=None, kernel=(3, 3), pad=(1, 0, 1, 2), **more):
        ops = ([(before, {})] if before else []) + [('pad', {'pad': pad, 'shape': (10, 10, 2)}), (op, dict(kernel=kernel, **more))]
        nodes = tiny_model.fold(self.chain(*ops))
        return ['pad' in [node.op for node in nodes], nodes[-1].pad]

    def test_padding_goes_into_convolutions(self):
        self.assertEqual(self.pad('conv2d'), [False, (1, 0, 1, 2)])
        self.assertEqual(self.pad('depthwise', pad=(0, 1, 0, 1), kernel=(3, 3)), [False, (0, 1, 0, 1)])
        self.assertEqual(self.pad('conv2d', kernel=(2, 3)), [False, (1, 0, 1, 2)])
        self.assertEqual(self.pad('conv2d', kernel=(1, 3))[0], True)
        self.assertEqual(self.pad('conv2d', kernel=(2, 2), dilation=(1, 2)), [False, (1, 0, 1, 2)])

    def test_padding_goes_into_a_largest_of_positive_numbers_alone(self):
        self.assertEqual(self.pad('maxpool')[0], True)
        self.assertEqual(self.pad('maxpool', 'relu')[0], False)
        self.assertEqual(self.pad('maxpool', 'tanh')[0], True)
        self.assertEqual(self.pad('avgpool', 'relu')[0], True)

    def test_padding_of_another_scale_stays(self):
        ops = [('conv2d', {'scale': 0.5, 'zero': 3}), ('pad', {'pad': (1, 1, 1, 1), 'shape': (10, 10, 2), 'scale': 0.25, 'zero': 3}),
               ('conv2d', {'kernel': (3, 3)})]
        self.assertEqual(self.names(self.chain(*ops)), ['input', 'conv2d', 'pad', 'conv2d'])

    def test_padding_by_nothing_vanishes(self):
        self.assertEqual(self.names(self.chain(('pad', {'pad': (0, 0, 0, 0)}), ('avgpool', {}))), ['input', 'avgpool'])

    def test_what_nobody_reads_is_dropped(self):
        nodes = self.chain(('conv2d', {}), ('relu', {}))
        nodes.insert(2, Node('tanh', 'lost', [nodes[1]], nodes[1].shape))
        self.assertEqual([n.name for n in tiny_model.fold(nodes)], ['x', 'n0', 'n1'])


class Rows(Case):
    def relations(self, op, shape, *inputs, **geometry):
        return tiny_model.find_relations(Node(op, 'n', [Node('relu', 'm', [], i) for i in inputs], shape, **geometry))

    def test_relations(self):
        image = (8, 6, 4)
        for wanted, op, shape, inputs, geometry in (
                (['3/2/1'], 'conv2d', (4, 3, 9), [image], {'kernel': (3, 3), 'stride': (2, 2), 'pad': (1, 0, 0, 0)}),
                (['3/1/2/2'], 'depthwise', image, [image], {'kernel': (3, 1), 'dilation': (2, 1), 'pad': (2, 0, 2, 0)}),
                (['1:1'], 'conv2d', image, [image], {'kernel': (1, 3), 'pad': (0, 1, 0, 1)}),
                (['1/2/0'], 'conv2d', (4, 3, 4), [image], {'stride': (2, 2)}),
                (['1:1', '1:1'], 'add', image, [image, image], {}), (['1:1', 'whole'], 'mul', image, [image, (4,)], {}),
                (['1:1', 'whole'], 'mul', image, [image, (1, 1, 4)], {}), (['up2'], 'upsample', (16, 12, 4), [image], {'stride': (2, 2)}),
                (['1:1', '1:1'], 'concat', (8, 6, 8), [image, image], {'axis': 2}), (['1:1', '1:1'], 'concat', (8, 12, 4), [image, image], {'axis': 1}),
                (None, 'concat', (16, 6, 4), [image, image], {'axis': 0}), (['1:1'], 'pad', (8, 8, 4), [image], {'pad': (0, 1, 0, 1)}),
                (None, 'pad', (9, 6, 4), [image], {'pad': (0, 0, 1, 0)}), (None, 'gavgpool', (4,), [image], {}), (None, 'linear', (9,), [image], {}),
                (None, 'relu', (4,), [(4,)], {}), (None, 'maxpool', (1, 1, 4), [image], {'kernel': (8, 6)}), (['1:1'], 'softmax', image, [image], {}),
                (None, 'add', image, [(192,), image], {})):
            self.assertEqual(self.relations(op, shape, *inputs, **geometry), wanted, (op, geometry))

    def test_a_graph_input_is_never_written_over(self):
        x = Node('input', 'x', [], (4,))
        y = Node('relu', 'y', [x], (4,))
        z = Node('add', 'z', [y, x], (4,))
        self.assertEqual([tiny_model.may_write_over_input(n) for n in (y, z, Node('mul', 'm', [Node('relu', 'r', [], (1, 1, 4)), z], (2, 2, 4)))],
                         [False, True, False])

    def test_an_input_that_is_an_output_is_refused(self):
        net = Lite()
        x = net.input([1, 4])
        y = net.elementwise('RELU', x, 0, 1)
        self.assertEqual(self.refusal(net.end(y, x)), 'input input0: is an output, too')


class Geometry(Case):
    def test_same_is_what_tensorflow_pads(self):
        for size in range(1, 12):
            for kernel in range(1, 6):
                for stride in range(1, 5):
                    for dilation in (1, 2):
                        before, behind, outputs = tiny_model.pad_same(size, kernel, stride, dilation)
                        self.assertEqual(outputs, (size + stride - 1) // stride)
                        self.assertIn(behind - before, (0, 1))
                        reach = dilation * (kernel - 1)
                        if before + behind: self.assertEqual((outputs - 1) * stride + reach + 1, size + before + behind)
                        else: self.assertLessEqual((outputs - 1) * stride + reach + 1, size)

    def test_windows_are_counted_as_by_hand(self):
        node = Node('conv2d', 'n', [], (1,))
        for size in range(1, 10):
            for kernel in range(1, 4):
                for stride in (1, 2, 3):
                    for before in range(kernel):
                        for behind in range(kernel):
                            starts = [at for at in range(-before, size + behind, stride) if at + kernel <= size + behind]
                            if starts: self.assertEqual(tiny_model.count_windows(node, 'height', size, kernel, stride, before, behind, 1), len(starts))
                            else: self.assertRaises(Refused, tiny_model.count_windows, node, 'height', size, kernel, stride, before, behind, 1)

    def test_geometry_of_a_network(self):
        nodes = {node.source if node.op == 'input' else node.name: node for node in self.nodes_of(lite_nets.exact())}
        told = [(n.op, n.kernel, n.stride, n.pad, n.dilation, n.act, n.multiplier) for n in nodes.values() if n.op in tiny_model.WINDOWED]
        self.assertEqual(told, [
            ('conv2d', (3, 3), (2, 1), (0, 1, 1, 0), (1, 1), 'relu6', 1),
            ('depthwise', (3, 2), (1, 1), (1, 0, 1, 1), (1, 1), 'none', 1),
            ('depthwise', (3, 3), (1, 1), (2, 1, 2, 1), (2, 1), 'relu', 2),
            ('conv2d', (1, 3), (1, 1), (0, 2, 0, 2), (1, 2), 'none', 1),
            ('maxpool', (2, 3), (2, 2), (0, 0, 0, 1), (1, 1), 'relu', 1),
            ('avgpool', (3, 3), (2, 2), (0, 0, 1, 1), (1, 1), 'none', 1)])

    def test_floats_at_both_ends_vanish(self):
        nodes = self.nodes_of(lite_nets.kws_floats())
        self.assertEqual([n.op for n in nodes], ['input', 'conv2d', 'depthwise', 'conv2d', 'avgpool', 'linear', 'softmax'])
        self.assertEqual((nodes[0].shape, nodes[0].zero, nodes[-1].keep), ((49, 10, 1), -1, True))

    def test_costs_are_flop(self):
        nodes = {n.op: n for n in self.nodes_of(lite_nets.kws_floats())}
        self.assertEqual([tiny_model.find_flops(nodes[op]) for op in ('input', 'conv2d', 'depthwise', 'linear', 'softmax')],
                         [0, 25 * 5 * 8 * 17, 25 * 5 * 8 * 19, 12 * 17, 12])

    def signal(self, is_column=False):
        """A network on a signal of three axes as Keras writes it, and the two tensors that it ends with."""
        net = Lite(is_float=True)
        x = net.input([1, 8, 3])
        y = net.conv(net.reshape(x, [1, 8, 1, 3] if is_column else [1, 1, 8, 3]), 4, (3, 1) if is_column else (1, 3))
        return net, net.reshape(y, [1, 8, 4])

    def test_negative_axes_count_from_the_last(self):
        for is_column in (False, True):
            for axis, made, place in ((-1, (1, 8, 8), 2), (2, (1, 8, 8), 2), (-2, (1, 16, 4), 1), (1, (1, 16, 4), 1)):
                net, y = self.signal(is_column)
                node = self.nodes_of(net.end(net.concat([y, y], axis)))[-1]
                if is_column: made, place = (made[1], 1, made[2]), 2 if place == 2 else 0
                self.assertEqual((node.op, node.shape, node.axis), ('concat', made, place), axis)
        net = Lite(is_float=True)
        x = net.input([1, 4, 5, 2])
        for axis, place in ((-1, 2), (-2, 1), (-3, 0), (3, 2)):
            self.assertEqual(self.nodes_of(net.end(net.concat([x, x], axis)))[-1].axis, place)
        for axis, sentence in ((0, 'along axis 0 of 4 is not known'), (-4, 'along axis 0 of 4 is not known'), (4, 'there is no axis 4 of 4'), (-5, 'there is no axis -5 of 4')):
            net = Lite(is_float=True)
            x = net.input([1, 4, 5, 2])
            y = net.op('CONCATENATION', [x, x], net.like([1, 4, 5, 4], x), f0_i=axis)
            self.assertIn(sentence, self.refusal(net.end(y)))
        for axes, sentence in (([-2, -3], ''), ([2, -3], ''), ([2, 5], 'there is no axis 5 of 4'), ([-5, 2], 'there is no axis -5 of 4'), ([-1], 'is known over')):
            net = Lite(is_float=True)
            x = net.input([1, 4, 5, 2])
            y = net.op('MEAN', [x, net.integers(axes)], net.like([1, 2], x), f0_B=0)
            if sentence: self.assertIn(sentence, self.refusal(net.end(y)))
            else: self.assertEqual(self.nodes_of(net.end(y))[-1].op, 'gavgpool')

    def test_signals_of_three_axes(self):
        for is_column, whole, long in ((False, (1, 8, 4), (1, 11, 4)), (True, (8, 1, 4), (11, 1, 4))):
            net, y = self.signal(is_column)
            pads = net.tensor([3, 2], 'INT32', [0, 0, 2, 1, 0, 0])
            z = net.op('PAD', [y, pads], net.like([1, 11, 4], y))
            mean = net.op('MEAN', [z, net.integers([-2])], net.like([1, 1, 4], z), f0_B=1)
            gate = net.op('MUL', [mean, y], net.like([1, 8, 4], y), f0_b=0)
            nodes = self.nodes_of(net.end(net.softmax(gate)))
            self.assertEqual([(n.op, n.shape) for n in nodes[2:]], [('pad', long), ('gavgpool', (4,)), ('mul', whole), ('softmax', whole)])
            self.assertEqual(nodes[2].pad, (2, 0, 1, 0) if is_column else (0, 2, 0, 1))
        net = Lite(is_float=True)
        x = net.input([1, 8, 4])
        y = net.reshape(net.conv(net.reshape(x, [1, 1, 8, 4]), 4, (1, 3)), [1, 8, 4])
        z = net.reshape(net.input([1, 8, 4]), [1, 8, 4])
        nodes = self.nodes_of(net.end(net.pair('ADD', net.softmax(z), y)))
        self.assertEqual([n.shape for n in nodes], [(1, 8, 4)] * 5)

    def test_uint8_is_int8_128_less(self):
        net = Lite()
        x = net.tensor([1, 4], 'UINT8', scales=[0.5], zeros=[100])
        net.inputs.append(x)
        y = net.op('QUANTIZE', [x], net.tensor([1, 4], 'INT8', scales=[0.5], zeros=[-28]))
        nodes = self.nodes_of(net.end(net.op('RELU', [y], net.like([1, 4], y))))
        self.assertEqual([(n.op, n.zero) for n in nodes], [('input', -28), ('relu', -28)])

    def test_another_scale_is_a_node(self):
        net = Lite()
        y = net.quantize(net.input([1, 4]), -4, 4)
        nodes = self.nodes_of(net.end(net.quantize(y, -1, 1)))
        self.assertEqual([n.op for n in nodes], ['input', 'requantize', 'requantize'])

    def test_what_computes_sizes_is_no_node(self):
        """SHAPE, STRIDED_SLICE and PACK before a RESHAPE, as Keras has them."""
        net = Lite()
        x = net.input([1, 4, 3, 2])
        one = lambda k: net.integers([k])
        count = net.op('SHAPE', [x], net.tensor([4], 'INT32'))
        count = net.op('STRIDED_SLICE', [count, one(0), one(1), one(1)], net.tensor([], 'INT32'))
        sizes = net.op('PACK', [count, one(24)], net.tensor([2], 'INT32'))
        nodes = self.nodes_of(net.end(net.dense(net.op('RESHAPE', [x, sizes], net.like([1, 24], x)), 3)))
        self.assertEqual([n.op for n in nodes], ['input', 'linear'])
        net = Lite()
        x = net.input([1, 4])
        self.assertIn('SHAPE t1: this op is not known', self.refusal(net.end(net.op('SHAPE', [x], net.like([2], x)))))

    def test_batches_that_are_not_fixed_are_one_sample(self):
        net = Lite()
        x = net.input([1, 4])
        net.signatures[x] = [-1, 4]
        self.assertEqual(len(self.nodes_of(net.end(net.dense(x, 3)))), 2)
        net.signatures[x] = [1, -1]
        self.assertEqual(self.refusal(net), 'tensor input0: its shape is dynamic')

    def test_weights_of_int8_behind_floats_become_floats(self):
        net = Lite(is_float=True)
        x = net.input([1, 2])
        w = net.tensor([2, 2], 'INT8', [1, -2, 3, 4], [0.5, 2.0], [0, 0])
        nodes = self.nodes_of(net.end(net.op('FULLY_CONNECTED', [x, w, -1], net.tensor([1, 2], 'FLOAT32'), f0_b=0)))
        self.assertEqual((nodes[1].weights.numbers(), nodes[1].bias.numbers(), nodes[1].scales), ((0.5, -1, 6, 8), (0, 0), None))

    def test_weights_of_f16_become_floats(self):
        net = Lite(is_float=True)
        x = net.input([1, 2])
        half = net.tensor([1, 2], 'FLOAT16', [0.5, -3])
        w = net.op('DEQUANTIZE', [half], net.tensor([1, 2], 'FLOAT32'))
        nodes = self.nodes_of(net.end(net.op('FULLY_CONNECTED', [x, w, -1], net.tensor([1, 1], 'FLOAT32'), f0_b=0)))
        self.assertEqual(nodes[1].weights.numbers(), (0.5, -3))


class Refusals(Case):
    def dense(self, **changes):
        """A dense layer of int8, with tensors changed: {'weights': (place in the tensor, value)}."""
        net = Lite()
        x = net.input([1, 4])
        y = net.dense(x, 3)
        names = {'input': x, 'weights': x + 1, 'bias': x + 2, 'output': y}
        for name, (place, value) in changes.items():
            tensor = list(net.tensors[names[name]])
            tensor[place] = value
            net.tensors[names[name]] = tuple(tensor)
        return net.end(y)

    def test_sentences(self):
        nan, shape, kind, raw, scales, zeros = float('nan'), 0, 1, 2, 4, 5
        for changes, sentence in (
                ({'weights': (raw, b'')}, 'FULLY_CONNECTED t3: weights are 0 bytes, and their shape is 3x4 of INT8'),
                ({'weights': (shape, [4, 3])}, 'FULLY_CONNECTED t3: its weights are 4x3 for 4 inputs'),
                ({'weights': (scales, [0.0] * 3)}, 'FULLY_CONNECTED t3: a scale of 0.0: must be a normal float above 0'),
                ({'weights': (scales, [1.0, 1.0])}, 'FULLY_CONNECTED t3: its weights have a zero point that is not 0'),
                ({'weights': (zeros, [0, 1, 0])}, 'FULLY_CONNECTED t3: its weights have a zero point that is not 0'),
                ({'bias': (shape, [2])}, 'FULLY_CONNECTED t3: biases are 12 bytes, and their shape is 2 of INT32'),
                ({'bias': (scales, [1.0, 1.0, 1.0])}, 'FULLY_CONNECTED t3: its biases have a scale of 1, and must have'),
                ({'input': (scales, [nan])}, 'input input0: a scale of nan: must be a normal float above 0'),
                ({'input': (scales, [])}, 'input input0: has 0 scales and 0 zero points, and must have one'),
                ({'input': (zeros, [128])}, 'input input0: a zero point of 128: must be -128 to 127'),
                ({'input': (shape, [2, 4])}, 'input input0: is 2x4, and must be one sample of a vector or an image'),
                ({'input': (shape, [1, -1])}, 'tensor input0: its shape is dynamic'),
                ({'output': (shape, [1, 0])}, 'tensor t3: its shape is dynamic'),
                ({'output': (shape, [1, 4])}, 'FULLY_CONNECTED t3: makes 3, and its output is 1x4'),
                ({'output': (kind, 'INT16')}, 'FULLY_CONNECTED t3: reads and makes INT16, INT8: is known of INT8 and of FLOAT32 alone'),
                ({'output': (zeros, [-129])}, 'FULLY_CONNECTED t3: a zero point of -129: must be -128 to 127')):
            self.assertIn(sentence, self.refusal(self.dense(**changes)))

    def test_scales_of_weights_fit_channels(self):
        net = self.dense()
        shape, kind, raw, name, _, _, axis = net.tensors[1]
        net.tensors[1] = shape, kind, raw, name, [1.0, 1.0], [0, 0], axis
        self.assertEqual(self.refusal(net), 'FULLY_CONNECTED t3: its weights have 2 scales')

    def test_ops_that_are_not_known(self):
        net = Lite()
        x = net.input([1, 4])
        self.assertEqual(self.refusal(net.end(net.op('SVDF', [x], net.like([1, 4], x)))), 'SVDF t1: this op is not known')

    def test_activations_that_are_not_known(self):
        net = Lite()
        x = net.input([1, 4, 4, 1])
        self.assertEqual(self.refusal(net.end(net.op('ADD', [x, x], net.like(net.shape(x), x), f0_b=4))), 'ADD t1: activation 4 is not known')

    def test_softmax_with_another_beta(self):
        net = Lite(is_float=True)
        x = net.input([1, 4])
        self.assertEqual(self.refusal(net.end(net.op('SOFTMAX', [x], net.like([1, 4], x), f0_f=2.0))), 'SOFTMAX t1: is known with beta 1 alone')

    def test_what_is_no_flatbuffer(self):
        self.assertIn('is damaged, or no .tflite', self.refusal(b'x'))
        self.assertIn('it does not begin as a file of TFL3 does', self.refusal(bytes(64)))


class Plans(Case):
    def planned(self, data):
        path, made = os.path.join(self.folder, 'net.tflite'), os.path.join(self.folder, 'plan.tflite')
        with open(path, 'wb') as file: file.write(data)
        with contextlib.redirect_stdout(io.StringIO()) as text:
            self.assertEqual(import_tflite.main([path, '--tflm-plan', made, '--tl-pack', TL_PACK]), 0)
        with open(made, 'rb') as file: return file.read(), text.getvalue()

    def test_no_two_tensors_lie_in_the_same_bytes_at_a_time(self):
        for make in (lite_nets.exact, lite_nets.curves, lite_nets.resnet8, lite_nets.kws_floats):
            data, text = self.planned(make().write())
            model = import_tflite.load(data)
            table = model.root.tables(6)[0]
            raw = model.buffers[table.number(1, 'I')].raw(0)
            version, graph, count, *offsets = struct.unpack('<%di' % (len(raw) // 4), raw)
            self.assertEqual((table.text(0), version, graph, count), ('OfflineMemoryAllocation', 1, 0, len(model.tensors)))
            rows = import_tflite.list_lifetimes(model)
            self.assertEqual([k for k, at in enumerate(offsets) if at >= 0], [row[0] for row in rows])
            self.assertIn('in %d bytes' % max(offsets[k] + size for k, _, _, size in rows), text)
            for a, first, last, size in rows:
                self.assertEqual(offsets[a] % 16, 0)
                for b, start, end, other in rows:
                    if a < b and first <= end and start <= last:
                        self.assertTrue(offsets[a] + size <= offsets[b] or offsets[b] + other <= offsets[a], (a, b))

    def test_results_live_to_the_end(self):
        net = Lite()
        x = net.input([1, 64])
        first = net.dense(x, 64)
        last = net.dense(net.dense(net.dense(first, 64), 64), 4)
        model = import_tflite.load(net.end(first, last).write())
        lives = {row[0]: row[1:3] for row in import_tflite.list_lifetimes(model)}
        self.assertEqual([lives[x], lives[first], lives[last], lives[last - 3]], [(0, 0), (0, 3), (3, 3), (2, 3)])
        self.assertEqual(len(lives), 5)

    def test_a_model_with_a_plan_is_imported_as_before(self):
        data = lite_nets.exact().write()
        planned, _ = self.planned(data)
        self.assertEqual(self.files(data), self.files(planned))
        again, _ = self.planned(planned)
        self.assertEqual(len(import_tflite.load(again).root.tables(6)), 1)

    def files(self, data):
        code, text, prefix = import_bytes(data, self.folder)
        self.assertEqual((code, text), (0, ''))
        return read_files(prefix)

    def test_without_tl_pack_there_is_a_sentence(self):
        path, errors = os.path.join(self.folder, 'net.tflite'), io.StringIO()
        with open(path, 'wb') as file: file.write(lite_nets.kws_floats().write())
        with contextlib.redirect_stderr(errors):
            self.assertEqual(import_tflite.main([path, '--tflm-plan', path + '.plan', '--tl-pack', '/none/tl_pack']), 1)
        self.assertEqual(errors.getvalue(), 'import_tflite: /none/tl_pack: No such file or directory (make build/tl_pack)\n')
        self.assertFalse(os.path.exists(path + '.plan'))

    def test_damaged_models_get_a_sentence(self):
        nets = [net.write() for net in (lite_nets.exact(), lite_nets.kws_floats())]
        codes = set()
        for seed in range(300):
            path, errors = os.path.join(self.folder, 'net.tflite'), io.StringIO()
            with open(path, 'wb') as file: file.write(damage_bytes(random.Random(seed), nets[seed % 2]))
            with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                code = import_tflite.main([path, '--tflm-plan', path + '.plan', '--tl-pack', TL_PACK])
            self.assertEqual(errors.getvalue().count('\n'), code, errors.getvalue())
            codes.add(code)
        self.assertEqual(codes, {0, 1})


class Flatbuffers(Case):
    def test_numbers_come_back(self):
        random_numbers, forms = random.Random(1), 'bBhHiIqQfd'
        for _ in range(200):
            fields = {}
            for field in range(random_numbers.randrange(12)):
                form = random_numbers.choice(forms)
                fields[field * 2] = (form, random_numbers.randrange(100))
            out = Writer(b'TEST')
            at, places = out.table(fields, (25,))
            out.set_root(at)
            out.refer(places[25], out.vector('q', [1, -2, 3], 8))
            root = read_root(bytes(out.data), b'TEST')
            for field, (form, number) in fields.items():
                self.assertEqual(root.number(field, form), number)
                self.assertEqual(root.find(field) % struct.calcsize('<' + form), 0)
            self.assertEqual((root.numbers(25, 'q'), root.number(1, 'i', 7), root.numbers(3, 'i')), ([1, -2, 3], 7, None))

    def test_fields_lie_within_their_table(self):
        out = Writer(b'TEST')
        at, _ = out.table({0: ('I', 7), 1: ('H', 8)})
        out.set_root(at)
        out.data += bytes(16)
        root = read_root(bytes(out.data), b'TEST')
        for offset in (0, 4, root.bytes - 2):
            struct.pack_into('<H', out.data, root.vtable + 6, offset)
            read_root(bytes(out.data), b'TEST').number(1, 'H')
        for offset in (1, 3, root.bytes, root.bytes + 4, 65535):
            struct.pack_into('<H', out.data, root.vtable + 6, offset)
            self.assertRaises(Damaged, read_root(bytes(out.data), b'TEST').number, 1, 'H')

    def test_offsets_outside_are_damage(self):
        """Every word of a small file, with numbers that lead out of it."""
        data = lite_nets.kws_floats(1).write()
        for at in range(0, len(data) - 4, 4):
            for number in (2**31, 2**32 - 1, len(data) - 3):
                bad = bytearray(data)
                struct.pack_into('<I', bad, at, number)
                try: import_tflite.import_model(import_tflite.load(bytes(bad)))
                except Refused: pass


class Damage(Case):
    def test_damaged_models_get_a_sentence(self):
        """Bytes, bits, words, cuts and other ops: a sentence, or a model that tl_plan reads."""
        nets = [net.write() for net in (lite_nets.exact(), lite_nets.curves(), lite_nets.kws_floats(), lite_nets.ds_cnn(8, 1),
                                        lite_nets.exact(True))]
        counts = {0: 0, 1: 0}
        for seed in range(1000):
            data = damage_bytes(random.Random(seed), nets[seed % len(nets)])
            code, text, prefix = import_bytes(data, self.folder)
            self.assertEqual(text.count('\n'), code, 'seed %d: %s' % (seed, text))
            counts[code] += 1
            if code: self.assertFalse([s for s in SUFFIXES if os.path.exists(prefix + s)], 'seed %d' % seed)
            elif seed % 4 == 0:
                done = subprocess.run([TL_PLAN, prefix + '.tlg', '--inference'], capture_output=True, text=True)
                self.assertEqual(done.stderr, '', 'seed %d' % seed)
        self.assertGreater(min(counts.values()), 50)

    def test_renamed_ops_get_a_sentence(self):
        others = ('CONV_2D', 'ADD', 'LSTM', 'RESHAPE', 'SOFTMAX', 'MEAN', 'CONCATENATION', 'PAD', 'DEQUANTIZE', 'FULLY_CONNECTED',
                  'QUANTIZE', 'MAX_POOL_2D', 'RESIZE_NEAREST_NEIGHBOR', 'RELU', 'DEPTHWISE_CONV_2D')
        refused = 0
        for net in (lite_nets.exact(), lite_nets.curves(), lite_nets.ds_cnn(8, 1)):
            for kind in net.codes:
                for other in others:
                    code, text, _ = import_bytes(net.write(renamed={kind: other}), self.folder)
                    self.assertEqual(text.count('\n'), code, text)
                    refused += code
        self.assertGreater(refused, 200)


if __name__ == '__main__':
    unittest.main(buffer=True)
