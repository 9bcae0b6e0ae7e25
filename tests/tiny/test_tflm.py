"""examples/import_tflite.py beside TensorFlow Lite Micro: the same numbers, and plans that its arena takes."""
import contextlib, io, os, sys, tempfile, types, unittest.mock

import interpret
import import_tflite
import lite_nets
import numpy as np
import tflm
import tiny_model
from support import Case, TL_PACK, output_of
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

NETS = dict(lite_nets.NETS, exact=lite_nets.exact, curves=lite_nets.curves)


class Numbers(Case):
    def compare(self, data, count, check):
        """Let check(TFLM's output, ours, the node) compare samples of a model."""
        with open(self.path('net.tflite'), 'wb') as file: file.write(data)
        nodes = self.imported(import_tflite.main, file.name)
        samples = tflm.random_samples(data, count)
        out = output_of(nodes)
        for sample, wanted in zip(samples, tflm.run(data, samples)):
            compute = interpret.compute_float if sample.dtype == np.float32 else interpret.compute_int
            check(wanted.ravel(), interpret.run(nodes, {nodes[0].name: sample}, compute)[out.name].ravel(), out)

    def test_floats_are_those_of_tflm(self):
        for name, make in NETS.items():
            self.compare(make(is_float=True).write(), 2, lambda wanted, got, node: self.assert_close(got, wanted, 1e-4, name))

    def test_integers_are_those_of_tflm_op_by_op(self):
        """Every op of the nets, each as the last one: bit by bit."""
        for net in (lite_nets.exact(), lite_nets.curves(), lite_nets.joined(), lite_nets.ds_cnn(16, 2), lite_nets.resnet8()):
            for end in range(1, len(net.operators) + 1):
                kind = net.operators[end - 1][0]
                self.compare(net.write(end), 2, lambda wanted, got, node: self.assertEqual(wanted.tolist(), got.tolist(), '%d %s' % (end, kind)))

    def test_integers_of_whole_networks_are_those_of_tflm(self):
        for name, make in lite_nets.NETS.items():
            self.compare(make().write(), 3, lambda wanted, got, node: self.assertEqual(wanted.tolist(), got.tolist(), name))

    def test_floats_at_both_ends(self):
        """TFLM rounds the input to int8 and its output to floats; ours begins and ends with int8."""
        data = lite_nets.kws_floats().write()
        with open(self.path('net.tflite'), 'wb') as file: file.write(data)
        nodes = self.imported(import_tflite.main, file.name)
        first, out = nodes[0], output_of(nodes)
        samples = tflm.random_samples(data, 20)
        for sample, wanted in zip(samples, tflm.run(data, samples)):
            q = np.clip(np.rint(sample / first.scale) + first.zero, -128, 127).astype(np.int8)
            got = interpret.run(nodes, {first.name: q}, interpret.compute_int)[out.name]
            self.assertEqual(((got.astype(np.float32) - out.zero) * out.scale).ravel().tolist(), wanted.ravel().tolist())


class Interpreter:
    """The part of TensorFlow Lite's interpreter that --calibrate calls, by interpret.py."""

    def __init__(self, model_content, experimental_preserve_all_tensors, experimental_op_resolver_type):
        assert experimental_preserve_all_tensors and experimental_op_resolver_type == 'plain'
        self.nodes, self.set, self.made = import_tflite.import_model(import_tflite.load(model_content)), {}, None
        files = tempfile.TemporaryDirectory()
        tiny_model.write_model(self.nodes, os.path.join(files.name, 'net'), 'net')
        self.read = interpret.read(os.path.join(files.name, 'net'))

    def allocate_tensors(self): pass
    def set_tensor(self, index, array): self.set[index] = array

    def invoke(self):
        made = interpret.run(self.read, {n.name: self.set[n.source].reshape(n.shape) for n in self.nodes if n.op == 'input'})
        self.made = {n.source: np.asarray(made[n.name]) for n in self.nodes}

    def get_tensor(self, index): return self.made[index]


class Ranges(Case):
    def setUp(self):
        super().setUp()
        module = types.ModuleType(import_tflite.INTERPRETERS[0])
        module.Interpreter, module.OpResolverType = Interpreter, types.SimpleNamespace(BUILTIN_WITHOUT_DEFAULT_DELEGATES='plain')
        patch = unittest.mock.patch.dict(sys.modules, {module.__name__.split('.')[0]: types.ModuleType('package'), module.__name__: module})
        patch.start()
        self.addCleanup(patch.stop)

    def calibrate(self, data, **arrays):
        with open(self.path('net.tflite'), 'wb') as file: file.write(data)
        np.savez(self.path('data.npz'), **arrays)
        return [file.name, '--calibrate', self.path('data.npz')]

    def test_ranges_are_what_an_interpreter_measures(self):
        for make in (lite_nets.exact, lite_nets.curves, lite_nets.joined):
            data = make(is_float=True).write()
            samples = np.stack([sample[0] for sample in tflm.random_samples(data, 3)])
            nodes = self.imported(import_tflite.main, *self.calibrate(data, input0=samples))
            made = [interpret.run(nodes, {nodes[0].name: sample.reshape(nodes[0].shape)}) for sample in samples]
            for node in nodes:
                low, high = min(np.min(m[node.name]) for m in made), max(np.max(m[node.name]) for m in made)
                self.assert_close([node.low, node.high], [low, high], 1e-5, node.name)
            self.assertEqual([n.low for n in self.imported(import_tflite.main, *self.calibrate(data, arr_0=samples))], [n.low for n in nodes])

    def test_refusals(self):
        data = lite_nets.curves(is_float=True).write()
        x = np.ones((2, 8, 8, 2), np.float32)
        for make, arrays, sentence in ((data, {'x': x}, 'data.npz: has no array input0, as the model calls its input: it has x'),
                                       (data, {'input0': x[0]}, 'data.npz: input0 is 8x8x2, and must be samples of 8x8x2'),
                                       (lite_nets.curves().write(), {'input0': x}, 'net.tflite: has scales of its own: --calibrate is for a model in floats')):
            code, text = self.run_importer(import_tflite.main, *self.calibrate(make, **arrays))
            self.assertEqual(code, 1)
            self.assertIn(sentence, text)
        with unittest.mock.patch.dict(sys.modules, {name: None for name in import_tflite.INTERPRETERS}):
            self.assertIn('there is no interpreter of TensorFlow Lite', self.run_importer(import_tflite.main, *self.calibrate(data, input0=x))[1])


class Files(Case):
    def test_tflms_reader_reads_the_same(self):
        """What lite_nets.py writes, by the reader that TFLM's package generated from the schema."""
        for make in NETS.values():
            net = make()
            data = net.write()
            model = schema.ModelT.InitFromPackedBuf(data, 0)
            self.assertEqual(len(model.subgraphs[0].tensors), len(net.tensors))
            mine = import_tflite.load(data)
            for theirs, tensor in zip(model.subgraphs[0].tensors, mine.tensors):
                self.assertEqual((theirs.name.decode(), list(theirs.shape)), (tensor.name, tensor.shape))
                raw = model.buffers[theirs.buffer].data
                self.assertEqual(b'' if raw is None else bytes(raw), tensor.raw)
                if theirs.quantization and theirs.quantization.scale is not None:
                    self.assertEqual(list(theirs.quantization.scale), tensor.scales)

    def test_models_packed_by_others_are_read(self):
        """The same three files from what the package flatbuffers packs."""
        import flatbuffers
        data = lite_nets.exact().write()
        builder = flatbuffers.Builder(1024)
        builder.Finish(schema.ModelT.InitFromPackedBuf(data, 0).Pack(builder), b'TFL3')
        made = []
        for packed in (data, bytes(builder.Output())):
            with open(self.path('net.tflite'), 'wb') as file: file.write(packed)
            self.imported(import_tflite.main, file.name)
            made.append([open(self.path('out') + s, 'rb').read() for s in ('.tlg', '.safetensors', '.ranges')])
        self.assertEqual(made[0], made[1])


class Plans(Case):
    def planned(self, data):
        with open(self.path('in.tflite'), 'wb') as file: file.write(data)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = import_tflite.main([file.name, '--tflm-plan', self.path('plan.tflite'), '--tl-pack', TL_PACK])
        self.assertEqual(code, 0)
        with open(self.path('plan.tflite'), 'rb') as file: return file.read(), output.getvalue()

    def test_the_head_of_tflms_arena_is_that_of_the_plan(self):
        falls = 0
        for name, make in NETS.items():
            data = make().write()
            planned, text = self.planned(data)
            before, after = tflm.head_of(self.path('in.tflite')), tflm.head_of(self.path('plan.tflite'))
            self.assertIn('in %d bytes' % after, text, name)
            self.assertLessEqual(after, before, name)
            falls += after < before
            samples = tflm.random_samples(data, 3)
            for a, b in zip(tflm.run(data, samples), tflm.run(planned, samples)): self.assertEqual(a.tolist(), b.tolist(), name)
        self.assertGreater(falls, 0)

    def test_a_plan_leaves_everything_else_as_it_was(self):
        data = lite_nets.exact().write()
        planned, _ = self.planned(data)
        one, other = (schema.ModelT.InitFromPackedBuf(d, 0) for d in (data, planned))
        self.assertEqual(other.metadata[0].name, b'OfflineMemoryAllocation')
        numbers = np.frombuffer(bytes(other.buffers[other.metadata[0].buffer].data), '<i4')
        self.assertEqual(numbers[:3].tolist(), [1, 0, len(one.subgraphs[0].tensors)])
        self.assertTrue((numbers[3:][numbers[3:] >= 0] % 16 == 0).all())
        import flatbuffers
        packed = []
        for model in (one, other):
            model.metadata, model.buffers = None, model.buffers[:len(one.buffers)]
            builder = flatbuffers.Builder(1024)
            builder.Finish(model.Pack(builder), b'TFL3')
            packed.append(bytes(builder.Output()))
        self.assertEqual(packed[0], packed[1])

    def test_a_second_plan_takes_the_place_of_the_first(self):
        planned, _ = self.planned(lite_nets.ds_cnn(8, 1).write())
        again, _ = self.planned(planned)
        model = schema.ModelT.InitFromPackedBuf(again, 0)
        self.assertEqual(len(model.metadata), 1)
        self.assertEqual(tflm.head_of(self.path('plan.tflite')), tflm.head_of(self.path('in.tflite')))
