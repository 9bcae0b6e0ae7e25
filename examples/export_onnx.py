#!/usr/bin/env python3
"""Write what an importer read, with the schemes that tl_plan chose, as an ONNX model: QDQ where they are integers.

    tl_plan NAME.tlg --inference --precision loss=0.1,objective=bytes,schemes=f32+i8+i8-channel,inputs=i8 --json PLAN.json
    export_onnx.py NAME --plan PLAN.json -o OUT.onnx

Reads NAME.tlg, NAME.safetensors and NAME.ranges (tiny_model.py). Needs the PyPI packages onnx and numpy.

  schemes   f32; i8 and i8-channel: tensors of int8; w8a16 and i16: tensors of int16 (opset 21). A node in integers reads
            integers: what is f32 before it is converted with the range of what made it. w4a8: tensors of int8, weights
            of int4 in blocks of 32 (opset 21)
  scales    those of .ranges where the model has them, else of the measured range: affine on -128 .. 127, or largest /
            32767; softmax, sigmoid and tanh as TensorFlow Lite has them; pools, pads and upsamplings have that of what
            they read. Weights: largest / 127 (i16: / 32767), of the tensor or of a channel. tl_plan --weights has the same
  biases    int32 of (scale of input) (scale of weights). Where one does not fit beside the largest sum of products, the
            scale of weights grows until it does, and a sentence says so (onnxruntime#25278)

Images are channels first, as ONNX has them. import_onnx.py OUT.onnx writes the same .tlg again.
"""
import argparse, json, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny_model import MOST_BYTES, Refused, WEIGHTED, WrongFile, as_line, read_files, read_model, refuse, run, write_file
try:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    sys.exit('export_onnx: %s (pip install onnx numpy)' % missing)

F = np.float32
SMALLEST_SCALE = F(2.0**-23)    # of a range that is 0
FORMATS = {'f32': None, 'i8': np.int8, 'i16': np.int16}
SCHEMES = 'f32', 'i8', 'i8-channel', 'w8a16', 'i16', 'w4a8'
ANEW = 'i16', 'w4a8'            # schemes that quantise weights of 8 bits anew
GROUP, MOST_W4_TERMS = 32, 8192     # w4a8: terms that share a factor, terms of a sum
MOVES = 'avgpool', 'maxpool', 'upsample', 'pad'
FIXED = 'softmax', 'sigmoid', 'tanh'
OPSET, OPSET_OTHERS = 17, 21    # the oldest that does, and that QuantizeLinear has int16, int4 and blocks from
NUMPY_OF = {'F32': '<f4', 'I32': '<i4', 'I8': 'i1'}


class Quantised:
    """How a tensor is stored: dtype, scale, zero point."""

    def __init__(self, dtype, scale, zero): self.dtype, self.scale, self.zero = dtype, F(scale), int(zero)
    def key(self): return self.dtype, self.scale.item(), self.zero


# -- scales, in f32 with one rounding an operation: as tl_find_quantization has them --

def scale_range(low, high, dtype):
    """Of numbers from low to high; 0 is among them."""
    low, high = min(F(low), F(0)), max(F(high), F(0))
    if dtype == np.int16: return Quantised(dtype, scale_largest(max(-low, high), 32767), 0)
    scale = max(F(F(high - low) / F(255)), SMALLEST_SCALE)
    return Quantised(dtype, scale, min(127, -128 - int(np.rint(F(low / scale)))))


def scale_largest(largest, steps):
    largest = F(largest)
    return max(F(largest / F(steps)), F(2.0**-126)) if largest > 0 else SMALLEST_SCALE


def scale_fixed(node, dtype):
    is_tanh, steps = node.op == 'tanh', 256 if dtype == np.int8 else 65536
    is_even = is_tanh or dtype == np.int16
    return Quantised(dtype, (2 if is_even else 1) / steps, 0 if is_even else -128)


def scale_output(node, dtype, of_input):
    """How the output of a node is stored in integers; of_input: how what it reads is."""
    if node.op in MOVES and of_input is not None: return of_input
    if node.scale is not None and dtype == np.int8: return Quantised(dtype, node.scale, node.zero)
    if node.op in FIXED: return scale_fixed(node, dtype)
    return scale_measured(node, dtype)


def scale_measured(node, dtype):
    """Of the numbers that a node makes: what a conversion goes by."""
    if node.scale is not None and dtype == np.int8: return Quantised(dtype, node.scale, node.zero)
    if node.low is not None: return scale_range(node.low, node.high, dtype)
    if node.scale is None:
        refuse(node, 'is stored in integers, and neither its range nor its scale is known (import_onnx.py --calibrate)')
    return scale_range(F(-128 - node.zero) * F(node.scale), F(127 - node.zero) * F(node.scale), dtype)


# -- weights --

def array_of(data): return np.frombuffer(data.raw, NUMPY_OF[data.dtype]).reshape(data.shape)


def channels_first(node, weights):
    """Weights as (channels, terms), one row an output channel."""
    if node.op == 'depthwise': weights = np.moveaxis(weights, -1, 0)
    return weights.reshape(weights.shape[0], -1)


def float_weights(node):
    """Weights (channels, terms) and biases as numbers."""
    weights, bias = channels_first(node, array_of(node.weights)), array_of(node.bias).astype(np.float64)
    if node.scales is None: return weights, bias
    scales = np.array(node.scales, F)
    source = node.inputs[0]
    if source.scale is None: refuse(node, 'its weights are in 8 bits, and the scale of what it reads is not known')
    return weights * scales.reshape(-1, 1), bias * (np.float64(source.scale) * scales)


def scale_weights(node, scheme, weights):
    """A scale for each channel, all the same where the tensor has one."""
    channels = len(weights)
    if node.scales is not None and scheme not in ANEW:
        if len(node.scales) > 1 and scheme == 'i8':
            refuse(node, 'its weights have a scale for each channel: the scheme must be i8-channel, not i8')
        return np.broadcast_to(np.array(node.scales, F), (channels,)).copy()
    largest = np.abs(weights).max(1, initial=0)
    if scheme in ('i8', 'i16'): largest[:] = largest.max()
    if scheme == 'w4a8': largest = (largest / F(7)).astype(F)
    return np.array([scale_largest(x, 32767 if scheme == 'i16' else 127) for x in largest], F)


def fit_biases(node, scheme, scales, biases, step):
    """Let scales grow until the biases fit: sums of int8 have 32 bits, of which products take their part."""
    terms = int(np.prod(node.weights.shape)) // len(biases)
    most = 2**31 - 1 - {'i8': 255 * 127, 'i8-channel': 255 * 127, 'w4a8': 255 * 7 * 127}.get(scheme, 0) * terms
    if scheme == 'w4a8' and terms > MOST_W4_TERMS: refuse(node, 'a sum of w4a8 has more than 8192 products, which 32 bits do not hold')
    if most <= 0: refuse(node, 'a sum has more than 65536 products, which 32 bits do not hold')
    grown = np.flatnonzero(np.abs(biases) > most * np.float64(step) * scales.astype(np.float64))
    if not grown.size: return scales
    if node.scales is not None and scheme not in ANEW:
        refuse(node, 'a bias of the model leaves no room for a sum in 32 bits')
    larger = np.abs(biases) / (most * np.float64(step)) * (1 + 1e-6)
    if not larger.max() < 3e38: refuse(node, 'a bias is too large for any scale')
    if scheme in ('i8', 'i16'): scales = np.full_like(scales, max(scales[0], F(larger.max())))
    else: scales[grown] = larger[grown]
    print('export_onnx: node %s: %d of its biases, that of channel %d first, do not fit 32 bits: '
          'a larger scale of weights is taken' % (node.name, grown.size, grown[0]), file=sys.stderr)
    return scales


def quantise_groups(weights, scales):
    """Weights of w4a8, -7 .. 7, and the steps (channels, groups) of their groups: scales times factors."""
    channels, terms = weights.shape
    groups = -(-terms // GROUP)
    padded = np.zeros((channels, groups * GROUP), F)
    padded[:, :terms] = weights
    most = (np.abs(padded).reshape(channels, groups, GROUP).max(2) / F(7)).astype(np.float64)
    wide = scales.astype(np.float64).reshape(-1, 1)
    factors = np.floor(most / wide)
    factors = np.minimum(127, factors + (factors * wide < most))
    steps = (scales.reshape(-1, 1) * factors.astype(F)).astype(F)
    each = np.repeat(np.where(factors > 0, steps, F(1)), GROUP, 1)[:, :terms]
    return np.clip(np.rint((weights.astype(F) / each).astype(F)), -7, 7).astype(np.int8), steps


def quantise_weights(node, scheme, step):
    """Integers (channels, terms) of weights, biases, scales; in w4a8 the steps of groups, too. step: the scale of the input."""
    weights, biases = float_weights(node)
    scales = fit_biases(node, scheme, scale_weights(node, scheme, weights), biases, step)
    high, dtype, groups = (32767, np.int16, None) if scheme == 'i16' else (127, np.int8, None)
    if scheme == 'w4a8': integers, groups = quantise_groups(weights, scales)
    elif node.scales is not None and scheme not in ANEW: integers = channels_first(node, array_of(node.weights))
    else: integers = np.clip(np.rint((weights / scales.reshape(-1, 1)).astype(F)), -high, high).astype(dtype)
    steps = biases / (np.float64(step) * scales.astype(np.float64))
    return integers, (np.sign(steps) * np.floor(np.abs(steps) + 0.5)).astype(np.int32), scales, groups


# -- the model --

class Exporter:
    """Makes an ONNX graph node by node. tensors: of each node the name of its floats, and how they are stored."""

    def __init__(self, nodes, schemes, formats):
        self.nodes, self.schemes, self.formats = nodes, schemes, formats
        self.ops, self.constants, self.tensors, self.stored, self.converted = [], [], {}, {}, {}

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, inputs, output, **attributes):
        self.ops.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def round_to(self, x, name, stored):
        """QuantizeLinear and DequantizeLinear: floats that integers can say."""
        scale = self.constant(name + '.step', stored.scale)
        zero = self.constant(name + '.zero', np.array(stored.zero, stored.dtype))
        return self.op('DequantizeLinear', [self.op('QuantizeLinear', [x, scale, zero], name + '.q'), scale, zero], name + '.dq')

    def integers_of(self, node, scheme):
        """How a node that computes in a scheme has what it reads; None = as floats."""
        return None if scheme == 'f32' else np.int16 if scheme in ('w8a16', 'i16') else np.int8

    def read_operand(self, node, k):
        """The name of an input, converted where a node in integers reads floats, and how it is stored."""
        maker, dtype = node.inputs[k], self.integers_of(node, self.schemes[node.name])
        stored = self.stored[maker.name]
        if dtype is None or (stored and stored.dtype == dtype): return self.tensors[maker.name], stored
        stored = scale_measured(maker, dtype)
        key = maker.name, stored.key()
        if key not in self.converted:
            self.converted[key] = self.round_to(self.tensors[maker.name], '%s.to_%s' % (maker.name, np.dtype(dtype).name), stored)
        return self.converted[key], stored

    def reshaped(self, x, name, before, after):
        """A tensor of one shape as another: (H, W, C) is 1 x C x H x W, and elements lie channels last."""
        if before == after: return x
        if len(before) == 3 and before[2] > 1 and before[0] * before[1] > 1:
            x = self.op('Transpose', [x], name + '.last', perm=[0, 2, 3, 1])
        to_image = len(after) == 3 and after[2] > 1 and after[0] * after[1] > 1
        sizes = [1, *after] if to_image or len(after) == 1 else [1, after[2], *after[:2]]
        x = self.op('Reshape', [x, self.constant(name + '.sizes', np.array(sizes, np.int64))], name + '.reshaped')
        return self.op('Transpose', [x], name + '.first', perm=[0, 3, 1, 2]) if to_image else x

    def operand(self, node, k, shape):
        x, stored = self.read_operand(node, k)
        return self.reshaped(x, '%s.in%d' % (node.name, k), node.inputs[k].shape, shape), stored

    def image_of(self, node, k=0):
        shape = node.inputs[k].shape
        return shape if len(shape) == 3 else (1, 1, shape[0])

    def dequantised(self, name, integers, steps, **how):
        zero = self.constant(name + '.zero', np.zeros(np.shape(steps), integers.dtype))
        parts = [self.constant(name + '.integers', integers), self.constant(name + '.step', steps), zero]
        return self.op('DequantizeLinear', parts, name, **how)

    def add_groups(self, name, integers, steps, image, is_flat):
        """Weights of int4 (channels, terms) in blocks, behind that in ONNX's order."""
        int4 = helper.make_tensor(name + '.integers', TensorProto.INT4, integers.shape, integers.ravel().tolist())
        self.constants.append(int4)
        x = self.op('DequantizeLinear', [int4.name, self.constant(name + '.step', steps)], name + '.terms', axis=1, block_size=GROUP)
        x = self.op('Reshape', [x, self.constant(name + '.image', np.array([-1, *image], np.int64))], name + '.last')
        x = self.op('Transpose', [x], name + '.first' if is_flat else name, perm=[0, 3, 1, 2])
        if not is_flat: return x
        return self.op('Reshape', [x, self.constant(name + '.matrix', np.array(integers.shape, np.int64))], name)

    def add_weights(self, node, image, stored, is_flat=False):
        """Names of weights and biases: floats, or integers behind a DequantizeLinear. image: height, width and channels
        that a row of weights lies over; is_flat: they are a matrix."""
        def arrange(w):
            w = w.reshape(-1, *image).transpose(0, 3, 1, 2)
            return w.reshape(len(w), -1) if is_flat else w
        scheme, weights, bias = self.schemes[node.name], node.name + '.weights', node.name + '.bias'
        if scheme == 'f32':
            numbers, biases = float_weights(node)
            return [self.constant(weights, arrange(numbers).astype(F)), self.constant(bias, biases.astype(F))]
        integers, biases, scales, groups = quantise_weights(node, scheme, stored.scale)
        is_one = (scales == scales[0]).all() and scheme in ('i8', 'i16')
        if is_one: scales = scales[0]
        how = {} if is_one else {'axis': 0}
        if scheme == 'w4a8': made = self.add_groups(weights, integers, groups, image, is_flat)
        else: made = self.dequantised(weights, arrange(integers), scales, **how)
        return [made, self.dequantised(bias, biases, scales * stored.scale, **how)]

    def add_window(self, node, x, kind, *inputs, **more):
        top, left, bottom, right = node.pad
        pads = [top, left, bottom, right]
        return self.op(kind, [x, *inputs], node.name, kernel_shape=node.kernel, strides=node.stride, pads=pads, **more)

    def add_linear(self, node):
        """Weights lie along the elements of an image, channels last; those of ONNX channels first."""
        shape = node.inputs[0].shape
        x, stored = self.read_operand(node, 0)
        if len(shape) == 3:
            sizes = self.constant(node.name + '.sizes', np.array([1, node.inputs[0].elements], np.int64))
            x = self.op('Reshape', [x, sizes], node.name + '.in0.reshaped')
        image = shape if len(shape) == 3 else (1, 1, shape[0])
        return self.op('Gemm', [x, *self.add_weights(node, image, stored, True)], node.name, transB=1)

    def add_conv(self, node):
        x, stored = self.operand(node, 0, self.image_of(node))
        channels = self.image_of(node)[2]
        group, depth = (channels, 1) if node.op == 'depthwise' else (1, channels)
        weights = self.add_weights(node, (*node.kernel, depth), stored)
        return self.add_window(node, x, 'Conv', *weights, dilations=node.dilation, group=group)

    def add_mean(self, node):
        x, _ = self.operand(node, 0, self.image_of(node))
        if len(node.shape) == 3: return self.op('GlobalAveragePool', [x], node.name)
        if self.opset() < 18: return self.op('ReduceMean', [x], node.name, axes=[2, 3], keepdims=0)
        axes = self.constant(node.name + '.axes', np.array([2, 3], np.int64))
        return self.op('ReduceMean', [x, axes], node.name, keepdims=0)

    def add_elementwise(self, node):
        kind = {'add': 'Add', 'mul': 'Mul', 'sigmoid': 'Sigmoid', 'tanh': 'Tanh', 'hardswish': 'HardSwish', 'relu': 'Relu',
                'requantize': 'Identity', 'relu6': 'Clip'}[node.op]
        inputs = []
        for k, maker in enumerate(node.inputs):
            is_row = maker.elements != node.elements
            inputs.append(self.operand(node, k, (1, 1, maker.elements) if is_row and len(node.shape) == 3 else node.shape)[0])
        if node.op == 'relu6':
            inputs += [self.constant(node.name + '.' + what, F(x)) for what, x in (('low', 0), ('high', 6))]
        return self.op(kind, inputs, node.name)

    def add_other(self, node):
        x, _ = self.operand(node, 0, node.shape if node.op == 'softmax' else self.image_of(node))
        if node.op == 'softmax': return self.op('Softmax', [x], node.name, axis=1)
        if node.op == 'maxpool': return self.add_window(node, x, 'MaxPool')
        if node.op == 'avgpool': return self.add_window(node, x, 'AveragePool')
        if node.op == 'pad':
            top, left, bottom, right = node.pad
            pads = np.array([0, 0, top, left, 0, 0, bottom, right], np.int64)
            return self.op('Pad', [x, self.constant(node.name + '.pads', pads)], node.name)
        factors = self.constant(node.name + '.factors', np.array([1, 1, *node.stride], F))
        return self.op('Resize', [x, '', factors], node.name, mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')

    def add_concat(self, node):
        shapes = [list(node.shape) for _ in node.inputs]
        for k, maker in enumerate(node.inputs):
            others = node.elements // node.shape[node.axis]
            shapes[k][node.axis] = maker.elements // others
        inputs = [self.operand(node, k, tuple(shape))[0] for k, shape in enumerate(shapes)]
        return self.op('Concat', inputs, node.name, axis=1 if len(node.shape) == 1 else (2, 3, 1)[node.axis])

    def add_node(self, node):
        scheme, dtype = self.schemes[node.name], FORMATS[self.formats[node.name]]
        if node.op == 'input': x = node.name
        elif node.op == 'linear': x = self.add_linear(node)
        elif node.op in WEIGHTED: x = self.add_conv(node)
        elif node.op == 'gavgpool': x = self.add_mean(node)
        elif node.op == 'concat': x = self.add_concat(node)
        elif node.op in ('softmax', 'maxpool', 'avgpool', 'pad', 'upsample'): x = self.add_other(node)
        else: x = self.add_elementwise(node)
        if node.act == 'relu': x = self.op('Relu', [x], node.name + '.relu')
        if node.act == 'relu6':
            x = self.op('Clip', [x, *(self.constant('%s.relu6.%d' % (node.name, b), F(b)) for b in (0, 6))], node.name + '.relu6')
        of_input = self.read_operand(node, 0)[1] if node.inputs and node.op in MOVES else None
        stored = scale_output(node, dtype, of_input if scheme != 'f32' else None) if dtype else None
        self.tensors[node.name] = self.round_to(x, node.name, stored) if stored else x
        self.stored[node.name] = stored

    def opset(self):
        others = {'w8a16', 'i16', 'w4a8'} & {*self.schemes.values(), *self.formats.values()}
        return OPSET_OTHERS if others else OPSET

    def model(self):
        sizes = lambda node: [1, node.shape[2], *node.shape[:2]] if len(node.shape) == 3 else [1, *node.shape]
        for node in self.nodes: self.add_node(node)
        inputs = [helper.make_tensor_value_info(n.name, TensorProto.FLOAT, sizes(n)) for n in self.nodes if n.op == 'input']
        outputs = [helper.make_tensor_value_info(self.tensors[n.name], TensorProto.FLOAT, sizes(n)) for n in self.nodes if n.keep]
        graph = helper.make_graph(self.ops, 'tl_plan', inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid('', self.opset())], ir_version=10)


def read_plan(path, nodes):
    """{node: scheme} and {node: format} of what tl_plan --precision --json wrote."""
    try: plan = json.loads(read_model(path))
    except (ValueError, RecursionError): raise WrongFile(path, 'is no JSON')
    rows = plan.get('precision') if isinstance(plan, dict) else None
    rows = rows.get('nodes') if isinstance(rows, dict) else None
    if not isinstance(rows, list):
        raise WrongFile(path, 'has no schemes: tl_plan --precision HOW --json writes them')
    found = {row.get('name'): (row.get('scheme'), row.get('format')) for row in rows if isinstance(row, dict)}
    for node in nodes:
        if node.name not in found: raise WrongFile(path, 'is of another model: node %s is missing' % node.name)
        scheme, form = found[node.name]
        if scheme not in SCHEMES or form not in FORMATS:
            refuse(node, 'scheme %s with format %s is not known in QDQ' % (scheme, form))
    if len(found) != len(nodes):
        raise WrongFile(path, 'is of another model: it has %d nodes, not %d' % (len(found), len(nodes)))
    return {name: row[0] for name, row in found.items()}, {name: row[1] for name, row in found.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('name', metavar='NAME', help='of NAME.tlg, NAME.safetensors, NAME.ranges')
    parser.add_argument('--plan', metavar='PLAN.json', help='of tl_plan --precision --json; without it all is f32')
    parser.add_argument('-o', metavar='OUT.onnx', dest='out', required=True)
    options = parser.parse_args(arguments)

    def work():
        nodes = read_files(options.name)
        schemes, formats = read_plan(options.plan, nodes) if options.plan else ({n.name: 'f32' for n in nodes},) * 2
        data = Exporter(nodes, schemes, formats).model().SerializeToString()
        if len(data) > MOST_BYTES: raise Refused('is more than 2 GiB as ONNX')
        write_file(options.out, data)
        print(as_line('%s: %d nodes, %d in integers, %d bytes' % (
            options.out, len(nodes), sum(form != 'f32' for form in formats.values()), len(data))))
    return run('export_onnx', options.name, work)


if __name__ == '__main__':
    sys.exit(main())
