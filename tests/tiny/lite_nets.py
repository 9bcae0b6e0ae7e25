"""Networks as .tflite files with random weights, of int8 or floats: the writer that no package on PyPI has without
TensorFlow. Plain Python 3; the reader that tests it is TFLM's own."""
import math, os, random, struct, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, '..', '..', 'examples'))
from flatbuffer import Writer
from import_tflite import FORMS, IDENTIFIER, OPS, TYPES

# Number of the options' table in the union, and which of its fields are what: (field, form) in the order of op().
OPTIONS = {'CONV_2D': 1, 'DEPTHWISE_CONV_2D': 2, 'AVERAGE_POOL_2D': 5, 'MAX_POOL_2D': 5, 'FULLY_CONNECTED': 8, 'SOFTMAX': 9,
           'CONCATENATION': 10, 'ADD': 11, 'RESHAPE': 17, 'MUL': 21, 'PAD': 22, 'MEAN': 27, 'DEQUANTIZE': 38,
           'RESIZE_NEAREST_NEIGHBOR': 74, 'QUANTIZE': 89, 'HARD_SWISH': 91}
SAME, VALID = 0, 1
NONE, RELU, RELU6 = 0, 1, 3
ACT = {NONE: -4.0, RELU: 0.0, RELU6: 0.0}      # least number of what is made


class Lite:
    """A model that grows by one op a call; tensors are numbers. is_float: floats in the place of int8."""

    def __init__(self, seed=1, is_float=False):
        self.random, self.is_float = random.Random(seed), is_float
        self.tensors, self.operators, self.codes, self.inputs = [], [], [], []
        self.signatures = {}            # of tensors whose shape is not fixed: -1

    # -- tensors --

    def tensor(self, shape, kind, numbers=None, scales=(), zeros=(), axis=0, name=None):
        raw = b'' if numbers is None else struct.pack('<%d%s' % (len(numbers), FORMS[kind]), *numbers)
        self.tensors.append((list(shape), kind, raw, name or 't%d' % len(self.tensors), list(scales), list(zeros), axis))
        return len(self.tensors) - 1

    def shape(self, x): return self.tensors[x][0]
    def scale(self, x): return self.tensors[x][4][0] if self.tensors[x][4] else None

    def activation(self, shape, low, high, name=None):
        """A tensor of numbers from low to high."""
        if self.is_float: return self.tensor(shape, 'FLOAT32', name=name)
        scale = f32((high - low) / 255)
        return self.tensor(shape, 'INT8', scales=[scale], zeros=[max(-128, min(127, round(-128 - low / scale)))], name=name)

    def like(self, shape, x, name=None):
        """A tensor with the scale of another one."""
        _, kind, _, _, scales, zeros, _ = self.tensors[x]
        return self.tensor(shape, kind, scales=scales, zeros=zeros, name=name)

    def input(self, shape, low=-2.0, high=2.0):
        self.inputs.append(self.activation(shape, low, high, 'input%d' % len(self.inputs)))
        return self.inputs[-1]

    def integers(self, numbers, kind='INT32'): return self.tensor([len(numbers)], kind, numbers)

    def weights(self, shape, x, channel_axis, fan):
        """Weights and biases; one scale a channel."""
        channels, count = shape[channel_axis], math.prod(shape)
        spread = 1.7 / math.sqrt(fan)
        if self.is_float:
            w = self.tensor(shape, 'FLOAT32', [self.random.gauss(0, spread) for _ in range(count)])
            return w, self.tensor([channels], 'FLOAT32', [self.random.gauss(0, 0.1) for _ in range(channels)])
        scales = [f32(spread * self.random.uniform(0.5, 1.5) * 3 / 127) for _ in range(channels)]
        zeros = [0] * channels
        numbers = [max(-127, min(127, round(self.random.gauss(0, 42)))) for _ in range(count)]
        steps = [f32(s * self.scale(x)) for s in scales]
        w = self.tensor(shape, 'INT8', numbers, scales, zeros, channel_axis)
        b = self.tensor([channels], 'INT32', [round(self.random.gauss(0, 0.1) / step) for step in steps], steps, zeros)
        return w, b

    # -- ops --

    def op(self, kind, inputs, output, **options):
        if kind not in self.codes: self.codes.append(kind)
        self.operators.append((kind, inputs, [output], {int(k[1:].split('_')[0]): (k.split('_')[1], v) for k, v in options.items()}))
        return output

    def conv(self, x, channels, kernel, stride=(1, 1), padding=SAME, act=RELU, dilation=(1, 1)):
        n, h, w, c = self.shape(x)
        weights = self.weights([channels, kernel[0], kernel[1], c], x, 0, kernel[0] * kernel[1] * c)
        made = [n] + windows((h, w), kernel, stride, padding, dilation) + [channels]
        return self.op('CONV_2D', [x, *weights], self.activation(made, ACT[act], 4), f0_b=padding, f1_i=stride[1], f2_i=stride[0],
                       f3_b=act, f4_i=dilation[1], f5_i=dilation[0])

    def depthwise(self, x, kernel, stride=(1, 1), padding=SAME, act=RELU, multiplier=1, dilation=(1, 1)):
        n, h, w, c = self.shape(x)
        weights = self.weights([1, kernel[0], kernel[1], c * multiplier], x, 3, kernel[0] * kernel[1])
        made = [n] + windows((h, w), kernel, stride, padding, dilation) + [c * multiplier]
        return self.op('DEPTHWISE_CONV_2D', [x, *weights], self.activation(made, ACT[act], 4), f0_b=padding, f1_i=stride[1], f2_i=stride[0],
                       f3_i=multiplier, f4_b=act, f5_i=dilation[1], f6_i=dilation[0])

    def dense(self, x, channels, act=NONE):
        terms = math.prod(self.shape(x))
        weights = self.weights([channels, terms], x, 0, terms)
        return self.op('FULLY_CONNECTED', [x, *weights], self.activation([1, channels], ACT[act], 4), f0_b=act)

    def pool(self, kind, x, kernel, stride, padding=VALID, act=NONE):
        n, h, w, c = self.shape(x)
        made = [n] + windows((h, w), kernel, stride, padding) + [c]
        return self.op(kind, [x], self.like(made, x), f0_b=padding, f1_i=stride[1], f2_i=stride[0], f3_i=kernel[1], f4_i=kernel[0], f5_b=act)

    def mean(self, x, keep=False, scale_of=None):
        n, _, _, c = self.shape(x)
        shape = [n, 1, 1, c] if keep else [n, c]
        made = self.activation(shape, 0, 3) if scale_of is None else self.like(shape, scale_of)
        return self.op('MEAN', [x, self.integers([1, 2])], made, f0_B=int(keep))

    def pair(self, kind, x, y, act=NONE): return self.op(kind, [x, y], self.activation(self.shape(x), ACT[act], 6), f0_b=act)

    def elementwise(self, kind, x, low, high): return self.op(kind, [x], self.activation(self.shape(x), low, high))

    def unit(self, kind, x, low, scale):
        """An op whose scale TFLite fixes: SOFTMAX, LOGISTIC and TANH."""
        made = self.activation(self.shape(x), 0, 1) if self.is_float else self.tensor(self.shape(x), 'INT8', scales=[scale], zeros=[low])
        return self.op(kind, [x], made, **({'f0_f': 1.0} if kind == 'SOFTMAX' else {}))

    def softmax(self, x): return self.unit('SOFTMAX', x, -128, 1 / 256)

    def concat(self, inputs, axis):
        made = list(self.shape(inputs[0]))
        made[axis] = sum(self.shape(x)[axis] for x in inputs)
        return self.op('CONCATENATION', list(inputs), self.like(made, inputs[0]), f0_i=axis)

    def pad(self, x, top, bottom, left, right):
        n, h, w, c = self.shape(x)
        pads = self.tensor([4, 2], 'INT32', [0, 0, top, bottom, left, right, 0, 0])
        return self.op('PAD', [x, pads], self.like([n, h + top + bottom, w + left + right, c], x))

    def reshape(self, x, shape): return self.op('RESHAPE', [x, self.integers(shape)], self.like(shape, x))

    def resize(self, x, factor):
        n, h, w, c = self.shape(x)
        return self.op('RESIZE_NEAREST_NEIGHBOR', [x, self.integers([h * factor, w * factor])], self.like([n, h * factor, w * factor, c], x),
                       f0_B=0, f1_B=0)

    def quantize(self, x, low, high):
        scale = f32((high - low) / 255)
        return self.op('QUANTIZE', [x], self.tensor(self.shape(x), 'INT8', scales=[scale], zeros=[round(-128 - low / scale)]))

    def dequantize(self, x): return self.op('DEQUANTIZE', [x], self.tensor(self.shape(x), 'FLOAT32'))

    # -- the file --

    def end(self, *outputs):
        self.outputs = list(outputs)
        return self

    def write(self, until=None, renamed=()):
        """The bytes of the .tflite; until: of the first so many ops, the last of which makes the output; renamed: ops that
        say they are others, {kind: other}."""
        operators = self.operators[:until]
        outputs = self.outputs if until is None else operators[-1][2]
        out = Writer(IDENTIFIER)
        root, places = out.table({0: ('I', 3)}, (1, 2, 3, 4))
        out.set_root(root)
        at, entries = out.references(len(self.codes))
        out.refer(places[1], at)
        for entry, kind in zip(entries, self.codes):
            number = OPS.index(dict(renamed).get(kind, kind))
            out.refer(entry, out.table({0: ('b', min(number, 127)), 2: ('i', 2), 3: ('i', number)})[0])
        at, entries = out.references(1)
        out.refer(places[2], at)
        graph, graph_places = out.table({}, (0, 1, 2, 3))
        out.refer(entries[0], graph)
        out.refer(graph_places[1], out.vector('i', self.inputs))
        out.refer(graph_places[2], out.vector('i', outputs))
        self.write_tensors(out, graph_places[0])
        self.write_operators(out, graph_places[3], operators)
        out.refer(places[3], out.text('random weights'))
        at, entries = out.references(len(self.tensors) + 1)
        out.refer(places[4], at)
        for entry, raw in zip(entries, [b''] + [t[2] for t in self.tensors]):
            buffer, data = out.table({}, (0,) if raw else ())
            out.refer(entry, buffer)
            if raw: out.refer(data[0], out.raw(raw))
        return bytes(out.data)

    def write_tensors(self, out, place):
        at, entries = out.references(len(self.tensors))
        out.refer(place, at)
        for k, (shape, kind, raw, name, scales, zeros, axis) in enumerate(self.tensors):
            behind = [0, 3] + ([4] if scales else []) + ([7] if k in self.signatures else [])
            table, places = out.table({1: ('b', TYPES.index(kind)), 2: ('I', k + 1 if raw else 0)}, behind)
            if k in self.signatures: out.refer(places[7], out.vector('i', self.signatures[k]))
            out.refer(entries[k], table)
            out.refer(places[0], out.vector('i', shape))
            out.refer(places[3], out.text(name))
            if scales:
                quantisation, inner = out.table({6: ('i', axis)}, (2, 3))
                out.refer(places[4], quantisation)
                out.refer(inner[2], out.vector('f', scales))
                out.refer(inner[3], out.vector('q', zeros, 8))

    def write_operators(self, out, place, operators):
        at, entries = out.references(len(operators))
        out.refer(place, at)
        for entry, (kind, inputs, outputs, options) in zip(entries, operators):
            numbers = {0: ('I', self.codes.index(kind))}
            if kind in OPTIONS: numbers[3] = ('B', OPTIONS[kind])
            table, places = out.table(numbers, (1, 2, 4) if kind in OPTIONS else (1, 2))
            out.refer(entry, table)
            out.refer(places[1], out.vector('i', inputs))
            out.refer(places[2], out.vector('i', outputs))
            if kind in OPTIONS: out.refer(places[4], out.table(options)[0])


def f32(x): return struct.unpack('<f', struct.pack('<f', x))[0]


def windows(size, kernel, stride, padding, dilation=(1, 1)):
    reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if padding == SAME: return [-(-n // s) for n, s in zip(size, stride)]
    return [(n - r - 1) // s + 1 for n, s, r in zip(size, stride, reach)]


# -- networks --

def ds_cnn(channels=64, blocks=4, is_float=False):
    net = Lite(1, is_float)
    x = net.conv(net.input([1, 49, 10, 1]), channels, (10, 4), (2, 2))
    for _ in range(blocks): x = net.conv(net.depthwise(x, (3, 3)), channels, (1, 1))
    x = net.pool('AVERAGE_POOL_2D', x, net.shape(x)[1:3], (1, 1))
    return net.end(net.softmax(net.dense(net.reshape(x, [1, channels]), 12)))


def mobilenet(size=96, alpha=0.25, classes=2, is_float=False):
    net = Lite(2, is_float)
    wide = lambda c: max(8, int(c * alpha))
    x = net.conv(net.input([1, size, size, 3]), wide(32), (3, 3), (2, 2), act=RELU6)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = net.conv(net.depthwise(x, (3, 3), (stride, stride), act=RELU6), wide(channels), (1, 1), act=RELU6)
    x = net.pool('AVERAGE_POOL_2D', x, net.shape(x)[1:3], (1, 1))
    return net.end(net.softmax(net.dense(net.reshape(x, [1, wide(1024)]), classes)))


def resnet8(is_float=False):
    net = Lite(3, is_float)
    x = net.conv(net.input([1, 32, 32, 3]), 16, (3, 3))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        y = net.conv(net.conv(x, channels, (3, 3), (stride, stride)), channels, (3, 3), act=NONE)
        if stride == 2: x = net.conv(x, channels, (1, 1), (2, 2), act=NONE)
        x = net.pair('ADD', x, y, RELU)
    x = net.pool('AVERAGE_POOL_2D', x, (8, 8), (8, 8))
    return net.end(net.softmax(net.dense(net.reshape(x, [1, 64]), 10)))


def autoencoder(inputs=640, is_float=False):
    net = Lite(4, is_float)
    x = net.input([1, inputs])
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128): x = net.dense(x, channels, RELU)
    return net.end(net.dense(x, inputs))


def exact(is_float=False):
    """All ops that are sums, products and shifts of integers."""
    net = Lite(5, is_float)
    x = net.conv(net.pad(net.input([1, 13, 9, 3]), 0, 1, 1, 0), 8, (3, 3), (2, 1), VALID, RELU6)
    y = net.depthwise(x, (3, 2), act=NONE, multiplier=1)
    x = net.pair('ADD', x, y)
    y = net.depthwise(x, (3, 3), (1, 1), multiplier=2, dilation=(2, 1), act=RELU)
    x = net.conv(y, 8, (1, 3), dilation=(1, 2), act=NONE)
    a = net.pool('MAX_POOL_2D', x, (2, 3), (2, 2), SAME, RELU)
    b = net.pool('AVERAGE_POOL_2D', x, (3, 3), (2, 2), SAME)
    x = net.concat([a, b], 3)
    x = net.elementwise('RELU', net.op('RELU6', [x], net.like(net.shape(x), x)), 0, 4)
    y = net.mean(x, keep=True)
    x = net.pair('MUL', x, y)
    x = net.resize(net.pad(x, 1, 0, 2, 0), 2)
    z = net.concat([x, x], 1)
    x = net.mean(z)
    return net.end(net.dense(x, 6))


def curves(is_float=False):
    """The ops that TFLite computes by tables and polynomials."""
    net = Lite(6, is_float)
    x = net.conv(net.input([1, 8, 8, 2]), 6, (3, 3), act=NONE)
    a = net.unit('LOGISTIC', x, -128, 1 / 256)
    b = net.unit('TANH', x, 0, 1 / 128)
    x = net.pair('MUL', net.elementwise('HARD_SWISH', x, -0.4, 4), net.pair('ADD', a, b))
    x = net.reshape(x, [1, 384])
    return net.end(net.softmax(net.dense(x, 5)))


def joined(is_float=False):
    """Vectors joined to one: flattened images, means, and what is a vector."""
    net = Lite(8, is_float)
    x = net.conv(net.input([1, 6, 5, 2]), 4, (3, 3))
    y = net.conv(x, 3, (3, 3), (2, 2))
    v = net.concat([net.reshape(x, [1, 120]), net.mean(x, scale_of=x), net.reshape(y, [1, 27])], -1)
    v = net.concat([v, net.dense(v, 5, RELU)], 1)
    return net.end(net.dense(v, 3))


def kws_floats(channels=8):
    """A little keyword network that takes floats and gives floats, int8 within."""
    net = Lite(7)
    net.is_float = True
    x = net.input([1, 490])
    net.is_float = False
    x = net.reshape(net.quantize(x, -2, 2), [1, 49, 10, 1])
    x = net.conv(x, channels, (10, 4), (2, 2))
    x = net.conv(net.depthwise(x, (3, 3)), channels, (1, 1))
    x = net.pool('AVERAGE_POOL_2D', x, net.shape(x)[1:3], (1, 1))
    return net.end(net.dequantize(net.softmax(net.dense(net.reshape(x, [1, channels]), 12))))


NETS = {'ds_cnn': ds_cnn, 'mobilenet': mobilenet, 'resnet8': resnet8, 'autoencoder': autoencoder}
