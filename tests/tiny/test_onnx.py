"""examples/import_onnx.py beside ONNX Runtime: the same numbers, ranges, sentences, damage."""
import contextlib, io, random

import import_onnx
import interpret
import nets
import numpy as np
import onnx
import onnxruntime
from damage import damage_bytes
from nets import Net
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from support import Case, output_of, plan, stored

NETS = dict(nets.NETS, little=nets.little)


def run_onnx(model, sample, names=None):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=['CPUExecutionProvider'])
    return session.run(names, sample)


class Samples(CalibrationDataReader):
    def __init__(self, samples):
        self.samples = iter([{k: a[i:i + 1] for k, a in samples.items()} for i in range(len(next(iter(samples.values()))))])

    def get_next(self): return next(self.samples, None)


def rounded(node, y):
    """Floats, those of integers where a node has a scale."""
    return y if node.scale is None else (np.clip(np.rint(y / node.scale) + node.zero, -128, 127) - node.zero) * node.scale


def compute_rounded(node, inputs): return rounded(node, np.asarray(interpret.activate(node, interpret.compute_float(node, inputs))))


def stored_as(node, array):
    """A sample of ONNX as a node stores it."""
    first = stored(array)
    return first if first.shape == node.shape else array[0].reshape(node.shape)


class Onnx(Case):
    def nodes_of(self, model, *more):
        return self.imported(import_onnx.main, nets.save(model, self.path('net.onnx')), *more)

    def compare(self, model, ratio=1e-4):
        """Ours beside ONNX Runtime's, floats."""
        nodes, samples = self.nodes_of(model), nets.samples_of(model, 2)
        for k in range(2):
            sample = {name: a[k:k + 1] for name, a in samples.items()}
            wanted = run_onnx(model, sample)
            made = interpret.run(nodes, {node.name: stored_as(node, sample[node.name]) for node in nodes if node.op == 'input'})
            kept = [node for node in nodes if node.keep]
            self.assertEqual(len(kept), len(wanted))
            for node, array in zip(kept, wanted): self.assert_close(made[node.name], stored(array), ratio)
        return nodes

    def refusal(self, model):
        path = self.path('net.onnx')
        with open(path, 'wb') as file: file.write(model if isinstance(model, bytes) else model.SerializeToString())
        code, text = self.run_importer(import_onnx.main, path)
        self.assertEqual(code, 1)
        return text.rstrip('\n').replace('import_onnx: %s: ' % path, '')


class Floats(Onnx):
    def test_networks(self):
        for make in NETS.values(): self.compare(make())

    def test_networks_are_planned_by_rows(self):
        for name, make in NETS.items():
            self.nodes_of(make())
            self.assertIn('lower bound', plan(self.path('out.tlg')))
            regions = [line for line in plan(self.path('out.tlg'), '--rows').splitlines() if 'of rows' in line]
            self.assertEqual(regions[0].startswith('0'), name == 'autoencoder', regions)

    def test_nothing_is_left_to_fold(self):
        self.assertEqual([n.op for n in self.compare(nets.ds_cnn(8, 1))],
                         ['input', 'conv2d', 'depthwise', 'conv2d', 'gavgpool', 'linear', 'softmax'])
        self.assertEqual([n.op for n in self.compare(nets.autoencoder())], ['input'] + ['linear'] * 10)

    def test_windows(self):
        """Kernels, strides, dilations and padding of both kinds, ceil_mode, auto_pad."""
        generator = random.Random(4)
        for _ in range(60):
            net = Net({'x': (1, 4, generator.randrange(5, 12), generator.randrange(5, 12))}, generator.randrange(10**6))
            kernel = [generator.randrange(1, 4), generator.randrange(1, 4)]
            stride = [generator.randrange(1, 4), generator.randrange(1, 4)]
            dilation = [generator.randrange(1, 3), generator.randrange(1, 3)]
            pads = [generator.randrange(d * (k - 1) + 1) for k, d in zip(kernel * 2, dilation * 2)]
            auto = generator.choice(['SAME_UPPER', 'SAME_LOWER', 'VALID', None])
            if auto: dilation, stride = [1, 1], [min(a, b) for a, b in zip(stride, kernel)]     # ONNX Runtime knows no more
            more = {'auto_pad': auto} if auto else {'pads': pads}
            kind = generator.choice(['Conv', 'depthwise', 'MaxPool', 'AveragePool', 'include'])
            if kind in ('Conv', 'depthwise'):
                groups, channels = (1, 5) if kind == 'Conv' else (4, generator.choice([4, 8]))
                y = net.op('Conv', 'x', net.normal(channels, 4 // groups, *kernel), kernel_shape=kernel, strides=stride,
                           dilations=dilation, group=groups, **more)
            else:
                if not auto: more['pads'] = [min(p, k - 1) for p, k in zip(pads, kernel * 2)]
                if kind == 'include': more = {'pads': more.get('pads', [0] * 4), 'count_include_pad': 1}
                elif not auto and generator.random() < 0.5: more = {'ceil_mode': 1, 'pads': [min(k - 1, 1) for k in kernel] + [0, 0]}
                y = net.op('AveragePool' if kind == 'include' else kind, 'x', kernel_shape=kernel, strides=stride, **more)
            self.compare(net.model(y))

    def test_layouts(self):
        """Images that are flattened, made of vectors, and transposed as TensorFlow's are."""
        net = Net({'x': (1, 3, 4, 5)})
        y = net.op('Relu', net.op('Flatten', net.conv('x', 3, 6, 3)))
        self.compare(net.model(net.dense(y, 120, 7)))
        net = Net({'x': (1, 30)})
        y = net.op('Reshape', 'x', net.constant(np.array([1, 1, 6, 5], np.int64)))
        self.compare(net.model(net.conv(y, 1, 4, 3)))
        net = Net({'x': (1, 6, 5, 3)})
        y = net.conv(net.op('Transpose', 'x', perm=[0, 3, 1, 2]), 3, 4, 3)
        y = net.op('Reshape', net.op('Transpose', y, perm=[0, 2, 3, 1]), net.constant(np.array([1, -1], np.int64)))
        model = net.model(net.op('Softmax', net.op('MatMul', y, net.normal(120, 4)), axis=-1))
        nodes = self.nodes_of(model)
        self.assertEqual([(n.op, n.shape) for n in nodes[:2]], [('input', (6, 5, 3)), ('conv2d', (6, 5, 4))])
        sample = nets.samples_of(model, 1)
        self.assert_close(interpret.run(nodes, {'x': sample['x'][0]})[output_of(nodes).name], run_onnx(model, sample)[0], 1e-4)

    def test_a_reshape_that_cuts_an_axis(self):
        net = Net({'x': (1, 3, 4, 5)})
        y = net.op('Reshape', net.conv('x', 3, 6, 3), net.constant(np.array([1, 6, 2, 10], np.int64)))
        self.compare(net.model(net.dense(net.op('Flatten', y), 120, 7)))

    def test_flattened_images_are_no_outputs(self):
        net = Net({'x': (1, 3, 4, 5)})
        self.assertEqual(self.refusal(net.model(net.op('Flatten', net.conv('x', 3, 6, 3)))),
                         'output flatten_1_out: is a flattened image, channels first: take the image itself as output, or transpose it to channels '
                         'last before it is flattened (Transpose with perm 0,2,3,1; 0,2,1 of a signal)')

    def test_what_the_sentences_on_flattened_images_say_to_do(self):
        def images(): return Net({'x': (1, 3, 4, 5)})
        def last(net, y, *perm): return net.op('Flatten', net.op('Transpose', y, perm=perm or (0, 2, 3, 1)))
        net = images()
        self.compare(net.model(net.conv('x', 3, 6, 3)))
        self.compare(net.model(last(net, net.conv('x', 3, 6, 3))))
        net = Net({'x': (1, 3, 7)})
        self.nodes_of(net.model(last(net, net.conv('x', 3, 6, [3], [1]), 0, 2, 1)))
        net = images()
        both = [net.conv('x', 3, channels, 3) for channels in (6, 4)]
        self.assertIn('joins flattened images, channels first: join the images, then flatten, or flatten behind a global pooling, or transpose each to channels last',
                      self.refusal(net.model(net.op('Concat', *[net.op('Flatten', y) for y in both], axis=1))))
        for flatten, size in ((last, 200), (lambda net, y: net.op('Flatten', net.op('GlobalAveragePool', y)), 10)):
            net = images()
            y = net.op('Concat', *[flatten(net, net.conv('x', 3, channels, 3)) for channels in (6, 4)], axis=1)
            self.compare(net.model(net.dense(y, size, 3)))
        net = images()
        y = net.op('Flatten', net.op('Concat', *[net.conv('x', 3, channels, 3) for channels in (6, 4)], axis=1))
        self.compare(net.model(net.dense(y, 200, 3)))

    def test_small_variances(self):
        net = Net({'x': (1, 2, 4, 4)})
        constants = [net.constant(np.array(a, np.float32)) for a in ([1, 2], [0, 1], [0.1, 0], [1e-6, 1e-3])]
        self.compare(net.model(net.op('BatchNormalization', net.conv('x', 2, 2, 1), *constants, epsilon=1e-5)))
        self.compare(net.model(net.op('BatchNormalization', net.conv('x', 2, 2, 1), *constants, epsilon=1e-3)))

    def test_signals_are_images_of_width_1(self):
        net = Net({'x': (1, 3, 20)})
        y = net.op('Conv', 'x', net.normal(5, 3, 4), kernel_shape=[4], strides=[2], pads=[1, 2])
        y = net.op('Relu', net.norm(y, 5))
        y = net.op('MaxPool', y, kernel_shape=[2], strides=[2])
        model = net.model(net.dense(net.op('Flatten', y), 25, 3))
        nodes, sample = self.nodes_of(model), nets.samples_of(model, 1)
        self.assertEqual(nodes[1].shape, (10, 1, 5))
        made = interpret.run(nodes, {'x': sample['x'][0].T.reshape(20, 1, 3)})
        self.assert_close(made[output_of(nodes).name], run_onnx(model, sample)[0], 1e-4)

    def test_affine_ops_are_folded_where_nobody_else_reads(self):
        net = Net({'x': (1, 3, 4, 4)})
        y = net.op('Div', net.op('Sub', 'x', net.constant(np.float32(0.5))), net.constant(np.full((1, 3, 1, 1), 0.25, np.float32)))
        a = net.op('Mul', net.conv(y, 3, 4, 3), net.constant(np.arange(1, 5, dtype=np.float32).reshape(4, 1, 1)))
        a = net.op('Add', net.constant(np.float32(1)), a)
        b = net.conv(a, 4, 4, 1)
        c = net.norm(b, 4)
        nodes = self.compare(net.model(net.op('Add', b, c)))
        self.assertEqual([n.op for n in nodes], ['input', 'depthwise', 'conv2d', 'conv2d', 'depthwise', 'add'])
        net = Net({'x': (1, 10)})
        y = net.op('Sub', net.constant(np.float32(2)), net.op('MatMul', 'x', net.normal(10, 4)))
        self.assertEqual([n.op for n in self.compare(net.model(net.op('Relu', y)))], ['input', 'linear'])

    def test_gemm_in_all_forms(self):
        for transposed in (0, 1):
            net = Net({'x': (1, 6)})
            w = net.normal(4, 6) if transposed else net.normal(6, 4)
            y = net.op('Gemm', 'x', w, net.normal(1, 4, scale=1), alpha=0.5, beta=2.0, transB=transposed)
            self.compare(net.model(y))

    def test_shapes_that_are_computed(self):
        """Shape, Gather, Concat, Reshape, as exporters write them; a batch that is not fixed is one sample."""
        net = Net({'x': (1, 3, 4, 4)})
        y = net.conv('x', 3, 2, 3)
        count = net.op('Unsqueeze', net.op('Gather', net.op('Shape', y), net.constant(np.int64(0)), axis=0), net.constant(np.array([0], np.int64)))
        sizes = net.op('Concat', count, net.constant(np.array([-1], np.int64)), axis=0)
        y = net.op('Reshape', y, sizes)
        model = net.model(net.dense(y, 32, 3))
        self.compare(model)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = 'N'
        self.assertEqual([n.op for n in self.nodes_of(model)], ['input', 'conv2d', 'linear'])

    def test_means_over_height_and_width(self):
        for opset in (13, 18):
            for keep in (0, 1):
                net = Net({'x': (1, 3, 4, 5)}, opset=opset)
                y = net.conv('x', 3, 6, 3)
                more = [net.constant(np.array([-1, 2], np.int64))] if opset == 18 else []
                y = net.op('ReduceMean', y, *more, keepdims=keep, **({} if more else {'axes': [2, -1]}))
                self.compare(net.model(net.dense(net.op('Flatten', y), 6, 3)))

        net = Net({'x': (1, 3, 4, 5)}, opset=18)
        y = net.op('ReduceMean', net.conv('x', 3, 6, 3), net.constant(np.zeros(0, np.int64)), noop_with_empty_axes=1)
        self.assertEqual([n.op for n in self.compare(net.model(y))], ['input', 'conv2d'])

    def test_gates(self):
        net = Net({'x': (1, 4, 6, 6)})
        y = net.op('HardSigmoid', net.conv('x', 4, 4, 1), alpha=1 / 6)
        net2 = Net({'x': (1, 4, 6, 6)})
        a = net2.conv('x', 4, 4, 1)
        b = net2.op('Mul', a, net2.op('HardSigmoid', a, alpha=1 / 6, beta=0.5))
        self.assertEqual([n.op for n in self.compare(net2.model(b))], ['input', 'conv2d', 'hardswish'])
        self.assertIn('hardsigmoid hardsigmoid_1: this op is not known', self.refusal(net.model(y)))

    def test_two_inputs_and_two_outputs(self):
        net = Net({'a': (1, 2, 4, 4), 'b': (1, 3, 4, 4)})
        y = net.op('Concat', 'a', 'b', axis=1)
        z = net.conv(y, 5, 2, 1)
        nodes = self.compare(net.model(z, net.op('Tanh', z)))
        self.assertEqual([n.keep for n in nodes], [False, False, False, True, True])


class Quantised(Onnx):
    def quantised(self, model, per_channel, activations, weights=QuantType.QInt8, **options):
        source, made = nets.save(model, self.path('float.onnx')), self.path('q.onnx')
        quantize_static(source, made, Samples(nets.samples_of(model, 8)), quant_format=QuantFormat.QDQ, per_channel=per_channel,
                        activation_type=activations, weight_type=weights, extra_options=options)
        return onnx.load(made)

    def check_nodes(self, model):
        """Every node of what ONNX Runtime made of its inputs: rounded as there, within one step."""
        nodes, sample = self.nodes_of(model), nets.samples_of(model, 1)
        sources = [node.source for node in import_onnx.import_model(import_onnx.load(self.path('net.onnx')))]
        watched, known = onnx.load(self.path('net.onnx')), [o.name for o in model.graph.output] + list(sample)
        for name in sources:
            if name not in known: watched.graph.output.append(helper.make_empty_tensor_value_info(name))
        names = [name for name in sources if name not in sample]
        theirs = dict(zip(names, run_onnx(watched, sample, names)), **sample)
        made = {}
        for node, source in zip(nodes, sources):
            wanted = rounded(node, stored_as(node, theirs[source]))
            if node.op != 'input':
                got = compute_rounded(node, [made[m.name] for m in node.inputs])
                if node.scale is None: self.assert_close(got, wanted, 1e-4, node.name)
                else: self.assertLessEqual(np.abs(got.ravel() - wanted.ravel()).max(), node.scale * 1.001, node.name)
            made[node.name] = wanted

    def test_qdq_models_within_a_step(self):
        for make in NETS.values():
            for per_channel in (False, True):
                for activations in (QuantType.QInt8, QuantType.QUInt8): self.check_nodes(self.quantised(make(), per_channel, activations))

    def test_weights_stay_the_integers_of_the_model(self):
        model = self.quantised(nets.autoencoder(32), True, QuantType.QUInt8)
        integers = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        nodes = [n for n in self.nodes_of(model) if n.op == 'linear']
        found = [a for a in integers.values() if a.dtype == np.int8 and a.ndim == 2]
        self.assertEqual(len(nodes), len(found))
        for node, array in zip(nodes, found):
            self.assertEqual(node.weights.dtype, np.int8)
            self.assertTrue((node.weights == array).all() or (node.weights == array.T).all())
            self.assertEqual(node.weight_scale.size, node.weights.shape[0])

    def test_uint8_weights_around_another_number_are_refused(self):
        model = self.quantised(nets.autoencoder(32), False, QuantType.QUInt8, QuantType.QUInt8)
        self.assertIn('constants have integers of 8, 16 or 32 bits around 0, not uint8 around', self.refusal(model))

    def test_integers_of_16_bits_are_a_range(self):
        self.assertIn('integers of 16 bits around', self.refusal(self.quantised(nets.autoencoder(32), False, QuantType.QInt16)))
        model = self.quantised(nets.autoencoder(32), False, QuantType.QInt16, ActivationSymmetric=True)
        nodes = self.nodes_of(model)
        self.assertEqual({(node.scale, node.weight_scale, -node.low == node.high > 0) for node in nodes if node.op != 'input'}, {(None, None, True)})

    def rounded(self, net, x, scale, zero=0, dtype=np.int8):
        parts = [net.constant(np.float32(scale)), net.constant(dtype(zero))]
        return net.op('DequantizeLinear', net.op('QuantizeLinear', x, *parts), *parts)

    def test_biases_of_another_scale_are_rounded_again(self):
        net = Net({'x': (1, 2)})
        w = net.op('DequantizeLinear', net.constant(np.array([[10, -127]], np.int8)), net.constant(np.float32(0.5)))
        for scale, wanted in ((0.25, 3000), (0.5, 6000)):
            b = net.op('DequantizeLinear', net.constant(np.array([3000], np.int32)), net.constant(np.float32(scale)))
            made = self.rounded(net, net.op('Gemm', self.rounded(net, 'x', 0.5), w, b, transB=1), 8)
            nodes = self.nodes_of(net.model(made))
            self.assertEqual((nodes[1].bias.tolist(), nodes[1].weights.tolist(), nodes[1].weight_scale.tolist()), ([wanted], [[10, -127]], [0.5]))

    def test_weights_that_are_quantised_by_the_model(self):
        """QuantizeLinear of a constant, as training writes it."""
        net = Net({'x': (1, 2)})
        w = self.rounded(net, net.constant(np.array([[1, -2], [0.26, 3]], np.float32)), 0.5)
        nodes = self.nodes_of(net.model(self.rounded(net, net.op('Gemm', self.rounded(net, 'x', 0.5), w, transB=1), 8)))
        self.assertEqual((nodes[1].weights.tolist(), nodes[1].weights.dtype), ([[2, -4], [1, 6]], np.int8))

    def test_a_gate_of_integers_is_no_hardswish(self):
        net = Net({'x': (1, 4, 3, 3)})
        gate = self.rounded(net, net.op('HardSigmoid', 'x', alpha=1 / 6, name='gate'), 1 / 256, -128)
        self.assertEqual(self.refusal(net.model(net.op('Mul', 'x', gate))), 'hardsigmoid gate: this op is not known')

    def test_another_scale_is_a_node(self):
        net = Net({'x': (1, 4, 3, 3)})
        def q(x, scale):
            s, z = net.constant(np.float32(scale)), net.constant(np.int8(3))
            return net.op('DequantizeLinear', net.op('QuantizeLinear', x, s, z), s, z)
        nodes = self.nodes_of(net.model(q(net.op('MaxPool', q('x', 0.1), kernel_shape=[3, 3]), 0.1)))
        self.assertEqual([(n.op, n.scale) for n in nodes], [('input', np.float32(0.1)), ('maxpool', np.float32(0.1))])
        net = Net({'x': (1, 4, 3, 3)})
        self.assertEqual([n.op for n in self.nodes_of(net.model(q(q('x', 0.1), 0.2)))], ['input', 'requantize'])


class Ranges(Onnx):
    def test_ranges_are_what_onnx_runtime_measures(self):
        model = nets.little()
        samples = nets.samples_of(model, 5)
        np.savez(self.path('data.npz'), **samples)
        nodes = self.nodes_of(model, '--calibrate', self.path('data.npz'))
        made = [interpret.run(nodes, {'image': stored(samples['image'][k:k + 1])}) for k in range(5)]
        for node in nodes:
            low, high = min(m[node.name].min() for m in made), max(m[node.name].max() for m in made)
            self.assert_close([node.low, node.high], [low, high], 1e-5, node.name)

    def test_every_node_has_a_range(self):
        """Those that the model does not have, too: the zeros around a mean, and another scale."""
        net = Net({'x': (1, 2, 4, 4)})
        made = net.op('AveragePool', 'x', kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
        np.savez(self.path('data.npz'), x=np.arange(2, 66, dtype=np.float32).reshape(2, 2, 4, 4))
        nodes = self.nodes_of(net.model(made), '--calibrate', self.path('data.npz'))
        self.assertEqual([(n.op, n.low, n.high) for n in nodes[:2]], [('input', 2, 65), ('pad', 0, 65)])
        net, y = Net({'x': (1, 2)}), 'x'
        for scale, zero in ((0.5, np.uint8(28)), (0.25, np.uint8(128)), (1, np.int8(-28))):
            parts = [net.constant(np.float32(scale)), net.constant(zero)]
            y = net.op('DequantizeLinear', net.op('QuantizeLinear', y, *parts), *parts)
        np.savez(self.path('data.npz'), x=np.array([[1, -2], [3, 0]], np.float32))
        nodes = self.nodes_of(net.model(y), '--calibrate', self.path('data.npz'))
        self.assertEqual([(n.op, n.low, n.high) for n in nodes], [('input', -2, 3)] + [('requantize', -2, 3)] * 2)
        for make in NETS.values():
            model = make()
            np.savez(self.path('data.npz'), **nets.samples_of(model, 1))
            for node in self.nodes_of(model, '--calibrate', self.path('data.npz')): self.assertLessEqual(node.low, node.high, node.name)

    def test_what_is_measured_comes_before_scales_of_16_bits(self):
        net = Net({'x': (1, 2)})
        parts = [net.constant(np.float32(1)), net.constant(np.int16(0))]
        y = net.op('DequantizeLinear', net.op('QuantizeLinear', 'x', *parts), *parts)
        model = net.model(net.op('Tanh', y))
        model.opset_import[0].version = 21
        np.savez(self.path('data.npz'), x=np.array([[1, 2], [-3, 0]], np.float32))
        self.assertEqual([(n.low, n.high) for n in self.nodes_of(model)][0], (-32767, 32767))
        self.assertEqual([(n.low, n.high) for n in self.nodes_of(model, '--calibrate', self.path('data.npz'))][0], (-3, 2))

    def test_data_that_does_not_fit(self):
        path = nets.save(nets.little(), self.path('net.onnx'))
        x = np.zeros((2, 3, 12, 8), np.float32)
        broken = x.copy()
        broken[1, 0, 0, 0] = np.nan
        for arrays, sentence in (({'a': x, 'b': x}, 'has no array image, as the model calls its input: it has a, b'), ({'x': x}, 'has no array image, as the model calls its input: it has x'),
                                 ({}, 'has no array image, as the model calls its input: it has none'), ({'image': x > 0}, 'image is of bool, and must be numbers'),
                                 ({'image': x[:, :2]}, 'image is 2x2x12x8, and must be samples of 3x12x8: (samples)x3x12x8'), ({'image': x[0]}, 'image is 3x12x8, and must be samples'),
                                 ({'image': x.transpose(0, 2, 3, 1)}, 'image is 2x12x8x3, and must be samples'), ({'image': np.full(x.shape, 1e300)}, 'image holds a NaN or an infinity'),
                                 ({'image': broken}, 'image holds a NaN or an infinity'), ({'image': x[:0]}, 'its arrays have no samples')):
            np.savez(self.path('data.npz'), **arrays)
            code, text = self.run_importer(import_onnx.main, path, '--calibrate', self.path('data.npz'))
            self.assertEqual(code, 1)
            self.assertIn('import_onnx: %s: %s' % (self.path('data.npz'), sentence), text)
        with open(self.path('data.npz'), 'wb') as file: np.save(file, x)
        self.assertIn('data.npz: is no .npz: is one array (.npy): numpy.savez writes an .npz', self.run_importer(import_onnx.main, path, '--calibrate', self.path('data.npz'))[1])
        with open(self.path('data.npz'), 'wb') as file: file.write(b'PK\3\4 no archive')
        self.assertEqual(self.run_importer(import_onnx.main, path, '--calibrate', self.path('data.npz'))[0], 1)
        self.assertEqual(self.run_importer(import_onnx.main, path, '--calibrate', self.path('none.npz')),
                         (1, 'import_onnx: %s: No such file or directory\n' % self.path('none.npz')))


    def told(self, model, **arrays):
        """What stderr got of an import that succeeds, and the nodes."""
        np.savez(self.path('data.npz'), **arrays)
        errors, path = io.StringIO(), nets.save(model, self.path('net.onnx'))
        with contextlib.redirect_stderr(errors):
            self.assertEqual(import_onnx.main([path, '-o', self.path('out'), '--calibrate', self.path('data.npz')]), 0)
        return errors.getvalue().replace('import_onnx: %s: ' % self.path('data.npz'), ''), interpret.read(self.path('out'))

    def test_data_that_is_unlikely(self):
        net = Net({'x': (1, 2)})
        model, x = net.model(net.op('Relu', net.op('Tanh', 'x'))), np.array([[1, -2], [3, 0]], np.float32)
        self.assertEqual(self.told(model, x=x)[0], '')
        self.assertEqual(self.told(model, arr_0=x)[0], '')
        self.assertEqual(self.told(model, x=x, labels=x)[0], 'labels: no input of the model, and not read\n')
        self.assertEqual(self.told(model, x=np.array([[7, 255]], np.uint8))[0].split(':')[0], 'x holds integers (uint8) from 7 to 255, where the model reads floats')
        self.assertEqual(self.told(model, x=np.zeros_like(x))[0], 'one number in all samples, so no range: x (0), tanh_0 (0), relu_1 (0)\n')
        self.assertEqual(self.told(model, x=-abs(x) - 1)[0], 'one number in all samples, so no range: relu_1 (0)\n')

    def test_one_axis_is_that_of_a_sample(self):
        net = Net({'x': (3,)})
        model = net.model(net.op('Relu', 'x'))
        for info in (model.graph.input[0], model.graph.output[0]): info.type.tensor_type.shape.dim[0].dim_value = 3
        _, nodes = self.told(model, x=np.array([[1, -2, 5], [3, 0, 1]], np.float32))
        self.assertEqual([(n.low, n.high) for n in nodes], [(-2, 5), (0, 5)])


class Refusals(Onnx):
    def test_ops(self):
        def of(kind, *inputs, sizes=(1, 4, 6, 6), opset=17, **attributes):
            net = Net({'x': sizes}, opset=opset)
            return net.model(net.op(kind, 'x', *(net.constant(a) for a in inputs), name='n', **attributes))
        f, i = np.float32, lambda *n: np.array(n, np.int64)
        for model, sentence in (
                (of('Sqrt'), 'Sqrt n: this op is not known'),
                (of('Clip', f(-1), f(1)), 'Clip n: from -1 to 1 is not known: 0 to 6, and from 0 on'),
                (of('Conv', np.ones((4, 2, 1, 1), f), group=2), 'Conv n: 2 groups of 4 channels are not known'),
                (of('ConvTranspose', np.ones((4, 2, 1, 1), f)), 'ConvTranspose n: this op is not known'),
                (of('Pad', i(0, 0, 1, 1, 0, 0, 1, 1), mode='reflect'), 'Pad n: pads with something else than 0'),
                (of('Pad', i(0, 0, 1, 1, 0, 0, 1, 1), f(2)), 'Pad n: pads with something else than 0'),
                (of('Pad', i(0, 1, 0, 0, 0, 0, 0, 0)), 'Pad n: pads the batch or the channels'),
                (of('Pad', i(0, 0, -1, 0, 0, 0, 0, 0)), 'Pad n: negative padding is not known'),
                (of('MaxPool', kernel_shape=[2, 2], dilations=[2, 2]), 'MaxPool n: pools with dilation are not known'),
                (of('Softmax', axis=2), 'Softmax n: is known over the channels alone'),
                (of('ReduceMean', axes=[1]), 'ReduceMean n: a mean'),
                (of('Resize', np.zeros(0, f), np.array([1, 1, 2, 2], f), mode='linear'), 'Resize n: is known with mode nearest alone'),
                (of('Resize', np.zeros(0, f), np.array([1, 1, 1.5, 2], f), mode='nearest'), 'Resize n: makes 9x12x4 of 6x6x4: is known for whole factors alone'),
                (of('Resize', np.zeros(0, f), np.array([1, 1, 3, 3], f), mode='nearest', coordinate_transformation_mode='asymmetric',
                    nearest_mode='ceil'), 'Resize n: its rounding is not that of row i / 3 for row i'),
                (of('Add', np.ones((1, 4, 6, 6), f)), 'Add n: a constant of 1x4x6x6 beside 1x4x6x6 is not known'),
                (of('BatchNormalization', *[-np.ones(4, f)] * 4), 'BatchNormalization n: a variance is not above 0'),
                (of('Conv', np.full((4, 4, 1, 1), np.nan, f)), 'conv2d n: a weight is no finite number')):
            self.assertIn(sentence, self.refusal(model))

    def test_weights_that_are_computed(self):
        net = Net({'x': (1, 4, 6, 6), 'w': (1, 4, 1, 1)})
        self.assertEqual(self.refusal(net.model(net.op('Conv', 'x', 'w', name='n'))), 'Conv n: weights are computed, and must be constant')

    def test_shapes_that_are_dynamic(self):
        model = nets.little()
        model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = 'height'
        del model.graph.value_info[:]
        self.assertIn('image: its shape is dynamic', self.refusal(model))

    def test_batches_and_types(self):
        model = nets.ds_cnn(8, 1)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
        del model.graph.value_info[:]
        for out in model.graph.output: out.type.tensor_type.shape.dim[0].dim_value = 4
        self.assertEqual(self.refusal(model), 'input input: is 4x1x49x10, and must be one sample of a vector or an image')

    def test_scales(self):
        for scale, zero, sentence in ((0.0, 0, 'a scale of 0.0: must be a normal float above 0'), (float('nan'), 0, 'a scale of nan'),
                                      (1e-40, 0, 'must be a normal float above 0'), (float('inf'), 0, 'a scale of inf')):
            net = Net({'x': (1, 4)})
            s, z = net.constant(np.float32(scale)), net.constant(np.int8(zero))
            y = net.op('DequantizeLinear', net.op('QuantizeLinear', 'x', s, z, name='q'), s, z)
            self.assertIn('QuantizeLinear q: ' + sentence if 'a scale' in sentence else sentence, self.refusal(net.model(y)))
        net = Net({'x': (1, 4)})
        s = net.constant(np.float32(0.1))
        q = net.op('QuantizeLinear', 'x', s, net.constant(np.int8(0)))
        self.assertIn('its scale is not that of its QuantizeLinear', self.refusal(net.model(net.op('DequantizeLinear', q, s, net.constant(np.int8(1))))))

    def test_what_is_no_model(self):
        for data in (b'', b'x' * 100, b'\x08\x07'): self.refusal(data)

    def test_models_above_2_gib(self):
        with open(self.path('net.onnx'), 'wb') as file: file.truncate(2**31)
        code, text = self.run_importer(import_onnx.main, file.name)
        self.assertIn('is larger than 2 GiB', text)
        model = nets.ds_cnn(8, 1)
        tensor = model.graph.initializer[0]
        tensor.ClearField('raw_data')
        tensor.data_location = tensor.EXTERNAL
        for key, value in (('location', 'none.bin'), ('length', str(2**31))): tensor.external_data.add(key=key, value=value)
        self.assertIn('its weights are more than 2 GiB', self.refusal(model))
        tensor.external_data[1].value = '100'
        self.assertIn('its weights cannot be read', self.refusal(model))


class Damage(Onnx):
    KINDS = ('Conv Gemm Relu Add Mul MaxPool Clip Softmax Pad Resize Concat LSTM Einsum Flatten Reshape Transpose Sigmoid Shape Cast '
             'BatchNormalization QuantizeLinear DequantizeLinear MatMul ReduceMean Identity Sub Div Squeeze GlobalAveragePool').split()

    def damage_model(self, generator, data):
        """Ops renamed, attributes, inputs, shapes and types changed: of a file that protobuf reads."""
        model = onnx.load_model_from_string(data)
        graph = model.graph
        for _ in range(generator.randrange(1, 4)):
            op, tensor, how = generator.choice(graph.node), generator.choice(graph.initializer), generator.randrange(9)
            names = [t.name for t in graph.initializer] + [name for other in graph.node for name in other.output] + ['']
            if how == 0: op.op_type = generator.choice(self.KINDS)
            if how == 1 and op.attribute:
                a = generator.choice(op.attribute)
                if a.ints: a.ints[generator.randrange(len(a.ints))] = generator.choice([-1, 0, 1, 2, 3, 7, 1 << 40, -5])
                else: a.i, a.f = generator.choice([-1, 0, 1, 2, 3, 1 << 40]), generator.choice([0, float('nan'), 2.5])
            if how == 2 and op.attribute: del op.attribute[generator.randrange(len(op.attribute))]
            if how == 3 and op.input: del op.input[generator.randrange(len(op.input))]
            if how == 4 and op.input: op.input[generator.randrange(len(op.input))] = generator.choice(names)
            if how == 5 and tensor.dims: tensor.dims[generator.randrange(len(tensor.dims))] = generator.choice([0, 1, 2, 3, 8, -1, 1 << 40])
            if how == 6: tensor.data_type = generator.randrange(20)
            if how == 7: tensor.raw_data = generator.choice([tensor.raw_data[:generator.randrange(len(tensor.raw_data) + 1)],
                                                             generator.randbytes(len(tensor.raw_data))])
            if how == 8:
                kind = generator.choice([*graph.input, *graph.output, *graph.value_info]).type.tensor_type
                if kind.shape.dim: generator.choice(kind.shape.dim).dim_value = generator.choice([0, -1, 1, 2, 3, 1 << 33, 12])
                else: kind.elem_type = generator.randrange(20)
        return model.SerializeToString()

    def test_damaged_models_get_a_sentence(self):
        """Of bytes, and of what they say: a sentence, or a model that tl_plan reads."""
        quantised = Quantised('quantised')
        quantised.folder = self.folder
        models = [m.SerializeToString() for m in (nets.little(), nets.ds_cnn(8, 1), quantised.quantised(nets.little(), True, QuantType.QUInt8))]
        counts = [0, 0]
        for seed in range(600):
            generator, data = random.Random(seed), models[seed % len(models)]
            data = damage_bytes(generator, data) if seed // 3 % 3 == 0 else self.damage_model(generator, data)
            with open(self.path('net.onnx'), 'wb') as file: file.write(data)
            code, _ = self.run_importer(import_onnx.main, file.name)
            counts[code] += 1
            if not code: plan(self.path('out.tlg'))
        self.assertGreater(min(counts), 40)
