"""examples/export_onnx.py: written and read again the same plan; ONNX Runtime beside ours; scales beside the library's."""
import contextlib, ctypes, io, json, os, random, re

import export_onnx
import import_onnx
import import_tflite
import interpret
import lite_nets
import nets
import numpy as np
import onnx
import tiny_model
from damage import damage_bytes
from onnx import helper
from support import BUILD, Case, SUFFIXES, plan
from test_onnx import NETS, compute_rounded, rounded, run_onnx, stored_as

SCHEMES = 'f32', 'i8', 'i8-channel+i8', 'i8+i8-channel+f32', 'w8a16+i16', 'i16', 'w4a8+i8'


def round_wide(y, step): return np.clip(np.rint(y / step), -32768, 32767) * step


class Export(Case):
    def imported_net(self, model, count=8):
        """A model with measured ranges, as NAME.*"""
        path, data = nets.save(model, self.path('net.onnx')), self.path('data.npz')
        np.savez(data, **nets.samples_of(model, count))
        self.assertEqual(import_onnx.main([path, '-o', self.path('net'), '--calibrate', data]), 0)

    def planned(self, schemes, name='net', out='plan.json'):
        words = 'loss=1e9,objective=bytes,schemes=%s,sensitive,any-result,unknown' % schemes
        if 'i8' in schemes.split('+') and 'f32' not in schemes.split('+')[0]: words += ',inputs=i8'
        plan(self.path(name + '.tlg'), '--inputs-die', '--align', '16', '--precision', words, '--budget', '200%', '--json', self.path(out))
        with open(self.path(out)) as file: made = json.load(file)
        del made['seconds']
        return made

    def by_channel(self, schemes):
        """Let the weighted nodes of a plan take the first scheme: it chooses among those that take the same bytes."""
        with open(self.path('plan.json')) as file: made = json.load(file)
        for row in made['precision']['nodes']:
            if row['op'] in tiny_model.WEIGHTED: row['scheme'] = schemes.split('+')[0]
        with open(self.path('plan.json'), 'w') as file: json.dump(made, file)

    def export(self, *arguments):
        """The exit code and what stderr got."""
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors): code = export_onnx.main([self.path('net'), '-o', self.path('out.onnx'), *arguments])
        return code, errors.getvalue()

    def exported(self, schemes):
        made = self.planned(schemes)
        if 'f32' not in schemes: self.by_channel(schemes)
        self.assertEqual(self.export('--plan', self.path('plan.json')), (0, ''))
        onnx.checker.check_model(onnx.load(self.path('out.onnx')), full_check=True)
        return made

    def reimported(self):
        self.assertEqual(import_onnx.main([self.path('out.onnx'), '-o', self.path('again')]), 0)
        return interpret.read(self.path('again'))


class Same(Export):
    def test_written_and_read_again_the_same_plan(self):
        for name, make in NETS.items():
            self.imported_net(make(), 2)
            for schemes in SCHEMES:
                first = self.exported(schemes)
                self.reimported()
                with open(self.path('net.tlg')) as a, open(self.path('again.tlg')) as b: self.assertEqual(a.read(), b.read(), (name, schemes))
                second = self.planned(schemes, 'again', 'again.json')
                first['model'] = second['model'] = ''
                self.assertEqual(first, second, (name, schemes))

    def test_tflite_to_onnx(self):
        """Scales of the model stay those of the model."""
        for make in (lite_nets.exact, lite_nets.kws_floats, lite_nets.resnet8):
            with open(self.path('net.tflite'), 'wb') as file: file.write(make().write())
            self.assertEqual(import_tflite.main([file.name, '-o', self.path('net')]), 0)
            self.exported('i8-channel+i8')
            again = {node.name: node for node in self.reimported()}
            for node in interpret.read(self.path('net')):
                self.assertEqual((node.scale, node.zero), (again[node.name].scale, again[node.name].zero), node.name)
                if node.weights is not None:
                    self.assertTrue((node.weights == again[node.name].weights).all())
                    self.assertTrue((node.bias == again[node.name].bias).all())


    def test_scales_of_weights_are_of_the_tensor_or_of_a_channel(self):
        self.imported_net(nets.little(), 2)
        weights = {node.name: node.weights for node in interpret.read(self.path('net')) if node.weights is not None}
        for schemes in ('i8', 'i8-channel+i8'):
            self.exported(schemes)
            for node in self.reimported():
                if node.weights is None: continue
                rows = np.abs(np.moveaxis(weights[node.name], -1 if node.op == 'depthwise' else 0, 0).reshape(node.bias.size, -1)).max(1)
                wanted = [rows.max()] if schemes == 'i8' else rows
                self.assertEqual(node.weight_scale.tolist(), [np.float32(x / np.float32(127)) for x in wanted], (schemes, node.name))


class Numbers(Export):
    def check_nodes(self, schemes):
        """Every node of what ONNX Runtime makes of its inputs: within a step of ours; how many differ at all."""
        nodes, model = self.reimported(), onnx.load(self.path('out.onnx'))
        sources = [node.source for node in import_onnx.import_model(import_onnx.load(self.path('out.onnx')))]
        sample = nets.samples_of(model, 1)
        known = [o.name for o in model.graph.output] + list(sample)
        for name in sources:
            if name not in known: model.graph.output.append(helper.make_empty_tensor_value_info(name))
        names = [name for name in sources if name not in sample]
        theirs, made, different, count = dict(zip(names, run_onnx(model, sample, names)), **sample), {}, 0, 0
        for node, source in zip(nodes, sources):
            wanted, step = rounded(node, stored_as(node, theirs[source])), node.scale
            if node.scale is None and node.high is not None:        # int16: the range is that of its scale
                step = node.high / 32767
                wanted = round_wide(wanted, step)
            if node.op != 'input':
                inputs = [made[m.name] for m in node.inputs]
                is_float = node.weights is not None and node.weight_scale is None       # those of blocks are read as numbers
                if is_float or node.scale is None or any(m.scale is None for m in node.inputs): got = compute_rounded(node, inputs)
                else:
                    integers = [np.rint(y / m.scale + m.zero).astype(np.int8) for y, m in zip(inputs, node.inputs)]
                    got = (interpret.compute_int(node, integers).astype(np.float64) - node.zero) * node.scale
                if step is None: self.assert_close(got, wanted, 1e-4, (schemes, node.name))
                else:
                    if node.scale is None: got = round_wide(got, step)
                    steps = np.abs(got.ravel() - wanted.ravel()) / step
                    self.assertLess(steps.max(), 1.01, (schemes, node.name))
                    different, count = different + np.count_nonzero(steps > 0.5), count + steps.size
            made[node.name] = wanted
        return different / max(count, 1)

    def test_floats_are_those_of_the_model(self):
        for make in NETS.values():
            model = make()
            self.imported_net(model, 1)
            self.assertEqual(self.export(), (0, ''))
            sample = nets.samples_of(model, 1)
            for a, b in zip(run_onnx(model, sample), run_onnx(onnx.load(self.path('out.onnx')), sample)): self.assert_close(b, a, 1e-4)

    def test_onnx_runtime_is_within_a_step_of_each_scale(self):
        for make in NETS.values():
            self.imported_net(make())
            for schemes in SCHEMES:
                self.exported(schemes)
                self.assertLess(self.check_nodes(schemes), 0.01 if 'i16' not in schemes else 0.2, schemes)

    def test_nodes_in_floats_between_integers(self):
        """A plan by hand: every second node in floats, stored as such."""
        for make in (nets.little, nets.resnet8):
            self.imported_net(make())
            made = self.planned('i8-channel+i8')
            for k, row in enumerate(made['precision']['nodes']):
                if k % 2: row['scheme'] = row['format'] = 'f32'
            with open(self.path('plan.json'), 'w') as file: json.dump(made, file)
            self.assertEqual(self.export('--plan', self.path('plan.json')), (0, ''))
            model = onnx.load(self.path('out.onnx'))
            sample = nets.samples_of(model, 1)
            self.assert_close(run_onnx(model, sample)[0], run_onnx(onnx.load(self.path('net.onnx')), sample)[0], 0.1)

    def test_biases_that_overflow_make_scales_grow(self):
        """onnxruntime#25278: tiny weights beside a large bias."""
        net = nets.Net({'x': (1, 8)})
        y = net.op('Gemm', 'x', net.constant(np.full((4, 8), 1e-9, np.float32)), net.constant(np.array([5, 0, -3, 1e-9], np.float32)), transB=1, name='small')
        self.imported_net(net.model(y))
        for schemes in ('i8', 'i8-channel'):
            self.planned(schemes)
            code, text = self.export('--plan', self.path('plan.json'))
            self.assertEqual((code, text), (0, 'export_onnx: node small: 2 of its biases, that of channel 0 first, do not fit 32 bits: '
                                               'a larger scale of weights is taken\n'))
            model = onnx.load(self.path('out.onnx'))
            sample = nets.samples_of(model, 1)
            got, wanted = (run_onnx(m, sample)[0].ravel() for m in (model, onnx.load(self.path('net.onnx'))))
            self.assertLessEqual(np.abs(got - wanted).max(), 8 / 255 * 0.51)
            self.check_nodes(schemes)


class Groups(Export):
    def test_integers_and_factors_of_w4a8_are_those_of_the_library(self):
        """The constants that tl_plan --weights writes, taken apart: the same integers, and steps that are scale times factor."""
        self.imported_net(nets.resnet8(), 2)
        self.exported('w4a8+i8')
        initial = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(self.path('out.onnx')).graph.initializer}
        words = 'loss=1e9,objective=bytes,schemes=w4a8+i8,inputs=i8,sensitive,any-result,unknown'
        with open(self.path('profiles'), 'w') as file:
            file.write('profiles 1\n' + ''.join('profile %s w4a8=0.001:1\n' % op for op in tiny_model.WEIGHTED) + 'profile * i8=0.001:1\n')
        plan(self.path('net.tlg'), '--precision', words, '--profiles', self.path('profiles'), '--c-code=calls', 'net', '-o', self.folder,
             '--weights', self.path('net.safetensors'), '--ranges', self.path('net.ranges'), '--kernels', 'own')
        with open(self.path('net_constants.c')) as file: parts = re.findall(r'// \d+: (\S+), (\w+) in \w+\n([\d,\s]*)', file.read())
        made = {(node, what): np.array(text.replace(',', ' ').split(), np.uint8) for node, what, text in parts}
        weighted = [node for node in interpret.read(self.path('net')) if node.weights is not None]
        self.assertGreater(len(weighted), 9)
        for node in weighted:
            integers, steps = initial[node.name + '.weights.integers'].astype(int), initial[node.name + '.weights.step']
            channels, terms = integers.shape
            rows, factors = made[node.name, 'weights'].reshape(channels, -1), made[node.name, 'factors'].reshape(channels, -1)
            full = terms // 8 * 8
            blocks = rows[:, :full // 2].reshape(channels, -1, 4)
            ordered = np.concatenate([blocks & 15, blocks >> 4], 2).reshape(channels, full)
            rest = rows[:, full // 2:]
            ordered = np.concatenate([ordered, np.stack([rest & 15, rest >> 4], 2).reshape(channels, -1)], 1)[:, :terms].astype(int)
            np.testing.assert_array_equal(ordered - 16 * (ordered > 7), integers, node.name)
            self.assertEqual(factors.max(1).tolist(), [127] * channels)
            np.testing.assert_allclose(127.0 * steps, steps.max(1, keepdims=True) * factors, 1e-6)


class Scales(Export):
    def test_scales_are_those_of_the_library(self):
        """tl_find_quantization, called in the shared library: the same bits."""
        class Quantization(ctypes.Structure):
            _fields_ = [('scale', ctypes.c_float)] + [(n, ctypes.c_int32) for n in ('zero', 'low', 'high', 'rounding')]
        find = ctypes.CDLL(os.path.abspath(os.path.join(BUILD, 'parts', 'libtl_strategy.so'))).tl_find_quantization
        find.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_float, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p]
        generator, q = np.random.default_rng(3), Quantization()
        for k in range(20000):
            ends = np.sort((generator.normal(0, 1, 2) * 10.0 ** generator.uniform(-12, 12)).astype(np.float32))
            if k % 10 == 0: ends[:] = 0
            if k % 10 == 1: ends = np.abs(ends)[::1 if abs(ends[0]) <= abs(ends[1]) else -1]
            low, high = float(ends[0]), float(ends[1])
            self.assertEqual(find(None, 0, low, high, -128, 127, ctypes.byref(q)), 0)
            mine = export_onnx.scale_range(low, high, np.int8)
            self.assertEqual((mine.scale, mine.zero), (np.float32(q.scale), q.zero), (low, high))
            self.assertEqual(find(None, 3, low, high, -32768, 32767, ctypes.byref(q)), 0)
            self.assertEqual(export_onnx.scale_range(low, high, np.int16).scale, np.float32(q.scale))
            self.assertEqual(find(None, 2, -abs(high), abs(high), -128, 127, ctypes.byref(q)), 0)
            self.assertEqual(export_onnx.scale_largest(abs(high), 127), np.float32(q.scale))


class Refusals(Export):
    def refusal(self, *arguments):
        code, text = self.export(*arguments)
        self.assertEqual((code, text.count('\n'), os.path.exists(self.path('out.onnx'))), (1, 1, False), text)
        return text.rstrip('\n').replace('export_onnx: ', '').replace('%s: ' % self.path('net'), '').replace(self.folder + '/', '')

    def plan_with(self, change):
        with open(self.path('good.json')) as file: made = json.load(file)
        change(made)
        with open(self.path('plan.json'), 'w') as file: json.dump(made, file)
        return self.refusal('--plan', self.path('plan.json'))

    def test_plans(self):
        self.imported_net(nets.ds_cnn(8, 1))
        self.planned('i8', out='good.json')
        rows = lambda made: made['precision']['nodes']
        def rename(made): rows(made)[2]['name'] = 'other'
        def add(made): rows(made).append(dict(rows(made)[0], name='other'))
        def scheme(name): return lambda made: rows(made)[1].update(scheme=name)
        def drop(made): del made['precision']
        for change, sentence in ((rename, 'plan.json: is of another model: node conv_3 is missing'), (add, 'plan.json: is of another model: it has 8 nodes, not 7'),
                                 (scheme('f16'), 'conv2d conv_0: scheme f16 with format i8 is not known in QDQ'),
                                 (drop, 'plan.json: has no schemes: tl_plan --precision HOW --json writes them')):
            self.assertEqual(self.plan_with(change), sentence)
        with open(self.path('plan.json'), 'w') as file: file.write('{')
        self.assertEqual(self.refusal('--plan', self.path('plan.json')), 'plan.json: is no JSON')
        self.assertEqual(self.refusal('--plan', self.path('none.json')), 'none.json: No such file or directory')
        self.assertEqual(self.refusal('-o', self.path('none/out.onnx')), 'none/out.onnx: cannot be written: No such file or directory')

    def test_ranges_that_are_missing(self):
        self.assertEqual(import_onnx.main([nets.save(nets.ds_cnn(8, 1), self.path('net.onnx')), '-o', self.path('net')]), 0)
        self.planned('i8')
        self.assertEqual(self.refusal('--plan', self.path('plan.json')),
                         'input input: is stored in integers, and neither its range nor its scale is known (import_onnx.py --calibrate)')

    def test_files_of_another_model(self):
        self.imported_net(nets.ds_cnn(8, 1), 1)
        with open(self.path('net.tlg')) as file: text = file.read()
        with open(self.path('net.tlg'), 'w') as file: file.write(text.replace(' conv_3 ', ' conv_4 '))
        self.assertIn('net.ranges: is of another model, that of the .tlg is', self.refusal())

    def test_damaged_files_get_a_sentence(self):
        self.imported_net(nets.little(), 1)
        good, codes = {}, []
        for suffix in SUFFIXES:
            with open(self.path('net' + suffix), 'rb') as file: good[suffix] = file.read()
        for seed in range(600):
            suffix, generator = SUFFIXES[seed % 3], random.Random(seed)
            with open(self.path('net' + suffix), 'wb') as file: file.write(damage_bytes(generator, good[suffix]))
            code, text = self.export()
            self.assertEqual(text.count('\n'), code, (seed, text))
            codes.append(code)
            with open(self.path('net' + suffix), 'wb') as file: file.write(good[suffix])
        self.assertGreater(sum(codes), 300)
        self.assertGreater(len(codes) - sum(codes), 10)
