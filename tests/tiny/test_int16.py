"""Functions of int16 as tests/tiny_code.py interprets them, whose bits generated C has, beside TensorFlow Lite Micro."""
import os, sys

import lite_nets
import numpy as np
import tflm
from support import Case, ROOT

sys.path.insert(0, os.path.join(ROOT, 'tests'))
import tiny_code

SCALES = [2.0 ** -12, 2.0 ** -11, 2.0 ** -13, 8 / 32767, 2.0 ** -12 * 1.0006, 2.0 ** -12 * 1.0008, 2.0 ** -11 * 0.9995, 3e-4, 1e-5, 0.01, 0.9, 2.6]


def one_op(kind, shape, scale, **options):
    """A model of one op, from int16 of a scale to int16 of 1 / 32768."""
    net = lite_nets.Lite()
    net.inputs.append(net.tensor(shape, 'INT16', scales=[scale], zeros=[0], name='input0'))
    net.end(net.op(kind, [net.inputs[0]], net.tensor(shape, 'INT16', scales=[1 / 32768], zeros=[0]), **options))
    return bytes(net.write())


class Int16(Case):
    def test_sigmoid_and_tanh_of_every_number(self):
        words = np.arange(-32768, 32768, dtype=np.int16)
        for kind in 'LOGISTIC', 'TANH':
            for scale in map(tiny_code.f32, SCALES):
                wanted = tflm.run(one_op(kind, [1, 65536], scale), [words[None, :]])[0].ravel().tolist()
                got = [tiny_code.curve(q, tiny_code.ratio(scale), kind == 'TANH') for q in words.tolist()]
                self.assertEqual(wanted, got, '%s %g' % (kind, scale))

    def test_softmax(self):
        """TFLM fills the table of 1 / (1 + x) in floats: two entries are one apart from TensorFlow Lite's."""
        table = tiny_code.lookup_table(lambda v: 1 / (1 + v), 1 / 65535, -32768, 2 / 65535)
        table[160] -= 1
        table[294] += 1
        random = np.random.default_rng(3)
        for n in 1, 2, 7, 12, 100, 1000:
            for scale in map(tiny_code.f32, (2.0 ** -12, 7e-4, 3e-5, 0.02)):
                x = random.integers(-32768, 32768, [2000 // n + 1, n]).astype(np.int16)
                x[::3] //= 16
                wanted = tflm.run(one_op('SOFTMAX', list(x.shape), scale, f0_f=1.0), [x])[0].ravel().tolist()
                self.assertEqual(wanted, tiny_code.softmax_wide(x.ravel().tolist(), n, scale, reciprocal=table), '%d %g' % (n, scale))
