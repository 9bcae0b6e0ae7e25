"""Networks of MLPerf Tiny's shapes, and smaller ones, as ONNX models with random weights; one that PyTorch would export
has batch normalisation and Relu as nodes of their own."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Net:
    """A model that grows by one op a call. x is the name of a tensor; sizes are those of ONNX, channels first."""

    def __init__(self, inputs, seed=1, opset=17):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants, self.opset, self.count = [], [], opset, 0
        self.inputs = {name: list(sizes) for name, sizes in inputs.items()}
        self.outputs = []

    def constant(self, array, name=None):
        name = name or 'c%d' % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def op(self, kind, *inputs, name=None, outputs=1, **attributes):
        name = name or '%s_%d' % (kind.lower(), self.count)
        self.count += 1
        made = [name + '_out%s' % (k or '') for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name=name, **attributes))
        return made[0]

    def normal(self, *sizes, scale=None):
        fan = math.prod(sizes[1:]) or 1
        return self.constant(self.random.normal(0, scale or (2 / fan)**0.5, sizes).astype(np.float32))

    def conv(self, x, channels_in, channels, kernel, stride=1, pads=None, groups=1, bias=True, **attributes):
        kernel = [kernel] * 2 if isinstance(kernel, int) else list(kernel)
        stride = [stride] * 2 if isinstance(stride, int) else list(stride)
        pads = [k // 2 for k in kernel] * 2 if pads is None else pads
        w = self.normal(channels, channels_in // groups, *kernel)
        extra = [self.normal(channels, scale=0.1)] if bias else []
        return self.op('Conv', x, w, *extra, kernel_shape=kernel, strides=stride, pads=pads, group=groups, **attributes)

    def norm(self, x, channels):
        r = self.random
        return self.op('BatchNormalization', x, *(self.constant(a.astype(np.float32)) for a in (
            r.uniform(0.5, 1.5, channels), r.normal(0, 0.1, channels), r.normal(0, 0.1, channels), r.uniform(0.5, 1.5, channels))))

    def block(self, x, channels_in, channels, kernel, stride=1, pads=None, groups=1):
        return self.op('Relu', self.norm(self.conv(x, channels_in, channels, kernel, stride, pads, groups, bias=False), channels))

    def dense(self, x, inputs, outputs):
        return self.op('Gemm', x, self.normal(outputs, inputs), self.normal(outputs, scale=0.1), transB=1)

    def model(self, *outputs, batch=None):
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ([batch] if batch else [1]) + sizes[1:])
                  for name, sizes in self.inputs.items()]
        made = [helper.make_empty_tensor_value_info(name) for name in outputs]
        for info in made: info.type.tensor_type.elem_type = TensorProto.FLOAT
        graph = helper.make_graph(self.nodes, 'net', inputs, made, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)


def ds_cnn(channels=64, blocks=4):
    """Keyword spotting: 49 frames of 10 coefficients, 12 words."""
    net = Net({'input': (1, 1, 49, 10)})
    x = net.block('input', 1, channels, (10, 4), 2, [4, 1, 5, 1])
    for _ in range(blocks):
        x = net.block(x, channels, channels, 3, groups=channels)
        x = net.block(x, channels, channels, 1)
    x = net.op('Flatten', net.op('GlobalAveragePool', x))
    return net.model(net.op('Softmax', net.dense(x, channels, 12), axis=1))


def mobilenet(size=96, alpha=0.25, classes=2):
    net = Net({'image': (1, 3, size, size)})
    wide = lambda c: max(8, int(c * alpha))
    x, c = net.block('image', 3, wide(32), 3, 2, [0, 0, 1, 1]), wide(32)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]:
        x = net.block(x, c, c, 3, stride, [0, 0, 1, 1] if stride == 2 else [1] * 4, groups=c)
        x, c = net.block(x, c, wide(channels), 1), wide(channels)
    x = net.op('Flatten', net.op('GlobalAveragePool', x))
    return net.model(net.op('Softmax', net.dense(x, c, classes), axis=1))


def resnet8(classes=10):
    net = Net({'image': (1, 3, 32, 32)})
    x, c = net.block('image', 3, 16, 3), 16
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        pads = [0, 0, 1, 1] if stride == 2 else [1] * 4
        y = net.block(x, c, channels, 3, stride, pads)
        y = net.norm(net.conv(y, channels, channels, 3, bias=False), channels)
        if stride == 2: x = net.conv(x, c, channels, 1, stride)
        x, c = net.op('Relu', net.op('Add', x, y)), channels
    x = net.op('Flatten', net.op('AveragePool', x, kernel_shape=[8, 8]))
    return net.model(net.op('Softmax', net.dense(x, c, classes), axis=1))


def autoencoder(inputs=640):
    """Anomaly detection of MLPerf Tiny: ten dense layers."""
    net = Net({'input': (1, inputs)})
    x, c = 'input', inputs
    for channels in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        x, c = net.op('Relu', net.norm(net.dense(x, c, channels), channels)), channels
    return net.model(net.dense(x, c, inputs))


def little(classes=4):
    """Every kind of node on an image of 12 x 8 x 3: a residual, a concatenation, a gate, pools, an upsampling."""
    net = Net({'image': (1, 3, 12, 8)})
    pad = net.op('Pad', 'image', net.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)))
    x = net.op('Clip', net.conv(pad, 3, 8, 3, pads=[0] * 4), net.constant(np.float32(0)), net.constant(np.float32(6)))
    y = net.conv(x, 8, 8, 3, groups=8)
    x = net.op('Relu', net.op('Add', x, y))
    gate = net.op('Sigmoid', net.conv(net.op('GlobalAveragePool', x), 8, 8, 1))
    x = net.op('Mul', x, gate)
    a = net.op('MaxPool', x, kernel_shape=[2, 2], strides=[2, 2])
    b = net.op('AveragePool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = net.op('HardSwish', net.conv(net.op('Concat', a, b, axis=1), 16, 6, (3, 1), stride=(1, 2), pads=[2, 0, 2, 0], dilations=[2, 1]))
    x = net.op('Resize', x, '', net.constant(np.array([1, 1, 2, 2], np.float32)), mode='nearest',
               coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    x = net.op('Tanh', net.conv(x, 6, 12, 3, stride=2, groups=6))
    return net.model(net.op('Softmax', net.dense(net.op('Flatten', x), 12 * 6 * 2, classes), axis=1))


NETS = {'ds_cnn': ds_cnn, 'mobilenet': mobilenet, 'resnet8': resnet8, 'autoencoder': autoencoder}


def samples_of(model, count=4, seed=2):
    random = np.random.default_rng(seed)
    constant = {i.name for i in model.graph.initializer}
    return {i.name: random.normal(0, 1, [count] + [d.dim_value for d in i.type.tensor_type.shape.dim][1:]).astype(np.float32)
            for i in model.graph.input if i.name not in constant}


def save(model, path):
    onnx.save(model, path)
    return path
