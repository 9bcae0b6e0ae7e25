#!/usr/bin/env python3
"""Read a trained ONNX model and write NAME.tlg, NAME.safetensors and NAME.ranges, for planning and for C.

    import_onnx.py MODEL.onnx [-o NAME] [--calibrate DATA.npz]

Needs the PyPI packages onnx and numpy, and onnxruntime for --calibrate. The files are those of tiny_model.py.

  models    float, or QDQ (QuantizeLinear, DequantizeLinear) with activations of 8 bits and weights of int8 around 0; of
            activations of int16 the range is kept, not the scale; weights in blocks (w4a8 of export_onnx.py) become numbers.
            Shapes are fixed, the batch is one sample (an axis 0 that is not fixed is one)
  layout    images become H x W x C, also those of inputs and outputs; weights are transposed, and those behind a
            flattened image permuted. Models that come from TensorFlow, with Transposes around, lose these
  folded    batch normalisation, and multiplying or adding constants of a channel, into the convolution or dense layer
            before it; Relu and Clip(0, 6); Pad; what is left of a normalisation is a depthwise convolution of 1 x 1
  no nodes  Identity, Dropout, Flatten, Reshape, Squeeze, Unsqueeze, Transpose, and everything that is constant
  ranges    --calibrate: DATA.npz holds an array for each input, by its name (or one without a name, arr_0), samples along
            axis 0 as the model has them; the least and the largest number of each tensor over all samples

What is not known is refused with one sentence that names op and node; nothing is written then.
"""
import argparse, math, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tiny_model import (Data, MOST_BYTES, Node, Refused, WEIGHTED, by_x, check_scale, finish, pad_same, read_model, run,
                        set_window, take_output, tell, view_as_image, write_model)
try:
    import numpy as np
    import onnx
    from onnx import numpy_helper, shape_inference
    from onnx.reference import ReferenceEvaluator
    import calibration
    from calibration import in_a_line
except ImportError as missing:
    sys.exit('import_onnx: %s (pip install onnx numpy)' % missing)

FLOAT = onnx.TensorProto.FLOAT
NUMPY_OF = {'F32': '<f4', 'I32': '<i4', 'I8': 'i1'}
CHANNELS_LAST = 'transpose it to channels last before it is flattened (Transpose with perm 0,2,3,1; 0,2,1 of a signal)'
JOIN_IMAGES = 'join the images, then flatten, or flatten behind a global pooling, or ' + \
    CHANNELS_LAST.replace('it to', 'each to') + ', with the weights behind in that order'
MOST_FOLDED = 1 << 24       # elements of a constant that is computed here


class WrongLayout(Refused):
    """The order of the axes does not fit: another order of those of the inputs may."""


class Value:
    """A tensor of the model: the output of a node, and how its axes lie there. atoms: sizes above 1 of what the node
    stores, in order; axes: for each axis of the tensor the atoms that it runs through, the last one fastest."""

    def __init__(self, node, atoms, axes):
        self.node, self.atoms, self.axes = node, atoms, axes

    @property
    def shape(self): return [math.prod(self.atoms[a] for a in axis) for axis in self.axes]

    def flat(self): return [atom for axis in self.axes for atom in axis]


class Constant:
    """An array of the model; quantised ones keep their integers: array = integers * scales along axis."""

    def __init__(self, array, integers=None, scales=None, axis=0):
        self.array, self.integers, self.scales, self.axis = array, integers, scales, axis


def value_of(node, sizes, order):
    """A tensor of such sizes that a node stores with its axes in order."""
    stored = [axis for axis in order if sizes[axis] != 1]
    places = {axis: place for place, axis in enumerate(stored)}
    return Value(node, [sizes[axis] for axis in stored], [[places[k]] if k in places else [] for k in range(len(sizes))])


def image_order(rank): return [0] + list(range(2, rank)) + [1]


def split_atom(value, atom, first):
    """Cut an atom in two, the first of so many."""
    atoms = value.atoms[:atom] + [first, value.atoms[atom] // first] + value.atoms[atom + 1:]
    axes = [[b for a in axis for b in ([a, a + 1] if a == atom else [a + (a > atom)])] for axis in value.axes]
    return Value(value.node, atoms, axes)


def reshape(value, sizes, what):
    """The same elements in the same order under other sizes."""
    if math.prod(sizes) != math.prod(value.shape): raise Refused('%s: the sizes do not fit' % what)
    taken, axes = 0, []
    for size in sizes:
        left, count = size, 0
        while left > 1:
            atom = value.flat()[taken + count]
            if left % value.atoms[atom]:
                if value.atoms[atom] % left: raise Refused('%s: the sizes do not divide' % what)
                axes = [[a + (a > atom) for a in axis] for axis in axes]
                value = split_atom(value, atom, left)
                continue
            left //= value.atoms[atom]
            count += 1
        axes.append(value.flat()[taken:taken + count])
        taken += count
    return Value(value.node, value.atoms, axes)


class Importer:
    def __init__(self, model, channels_last):
        self.graph, self.channels_last = model.graph, channels_last
        self.opset = opset_of(model)
        self.values, self.constants, self.nodes = {}, {}, []
        self.shapes = {}

    # -- reading --

    def refuse(self, op, why): refuse_op(op, why)

    def refuse_layout(self, op, why): raise WrongLayout('%s %s: %s' % (op.op_type, name_of(op), why))

    def attributes(self, op):
        return {a.name: onnx.helper.get_attribute_value(a) for a in op.attribute if a.type != a.UNDEFINED}

    def value(self, op, k):
        name = op.input[k] if k < len(op.input) else ''
        if name not in self.values:
            self.refuse(op, 'its input %d is %s' % (k, 'a constant' if name in self.constants else 'missing'))
        return self.values[name]

    def constant(self, op, k, what):
        """The Constant of an input; None where it is left out."""
        name = op.input[k] if k < len(op.input) else ''
        if name and name not in self.constants:
            self.refuse(op, '%s are %s' % (what, 'computed, and must be constant' if name in self.values else 'missing'))
        return self.constants[name] if name else None

    def number_list(self, op, k, what, count):
        constant = self.constant(op, k, what)
        if constant is None: return None
        if constant.array.dtype.kind not in 'iuf' or constant.array.size != count:
            self.refuse(op, '%s must be %d numbers' % (what, count))
        return [x.item() for x in constant.array.ravel()]

    def sizes_of(self, op, name):
        """The fixed sizes of a tensor, by shape inference."""
        if name not in self.shapes: self.refuse(op, 'the shape of %s is dynamic' % name)
        return self.shapes[name]

    def image(self, op, value):
        """The (H, W, C) that a value is, and its node stores; a signal of length L is (L, 1, C)."""
        if len(value.axes) not in (3, 4) or value.axes[0]:
            self.refuse(op, 'reads %s, and must read an image' % by_x(value.shape))
        order = image_order(len(value.axes))[1:]
        sizes = value.shape
        if [a for axis in order for a in value.axes[axis]] != list(range(len(value.atoms))):
            self.refuse_layout(op, 'the axes of what it reads lie in another order')
        shape = (sizes[2], sizes[3] if len(sizes) == 4 else 1, sizes[1])
        view_as_image(value.node, shape)
        return shape

    def vector(self, op, value):
        """The length of a vector, in the order in which its node stores it."""
        if value.axes and value.axes[0]: self.refuse(op, 'reads more than one sample')
        if sum(map(bool, value.axes)) > 1: self.refuse(op, 'reads %s, and must read a vector' % by_x(value.shape))
        return math.prod(value.shape)

    # -- making --

    def add(self, op, kind, inputs, shape, sizes=None, **geometry):
        node = Node(kind, name_of(op), inputs, shape, op.output[0], **geometry)
        self.nodes.append(node)
        if sizes is None: sizes = self.sizes_of(op, op.output[0])
        order = image_order(len(sizes)) if len(sizes) > 2 else list(range(len(sizes)))
        if math.prod(sizes) != node.elements:
            self.refuse(op, 'makes %s, and its output is %s' % (by_x(shape), by_x(sizes)))
        self.values[op.output[0]] = value_of(node, sizes, order)
        return node

    def add_like(self, op, kind, value, inputs=None, **geometry):
        """A node whose output lies as a value does."""
        node = Node(kind, name_of(op), [v.node for v in inputs or [value]], value.node.shape, op.output[0], **geometry)
        self.nodes.append(node)
        self.values[op.output[0]] = Value(node, value.atoms, value.axes)
        return node

    def read_inputs(self):
        initial = {i.name for i in self.graph.initializer}
        for info in self.graph.input:
            if info.name in initial: continue
            kind = info.type.tensor_type
            if info.type.WhichOneof('value') != 'tensor_type' or kind.elem_type != FLOAT:
                raise Refused('input %s: must be a tensor of float' % info.name)
            if info.name not in self.shapes: raise Refused('input %s: its shape is dynamic' % info.name)
            sizes = self.shapes[info.name]
            rank = len(sizes)
            if not 1 <= rank <= 4 or (sizes[0] != 1 and rank > 1):
                raise Refused('input %s: is %s, and must be one sample of a vector or an image' % (info.name, by_x(sizes)))
            order = list(range(rank)) if self.channels_last or rank < 3 else image_order(rank)
            stored = [sizes[axis] for axis in order]
            shape = (math.prod(stored),) if rank < 3 else tuple(stored[1:3] if rank == 4 else [stored[1], 1]) + (stored[-1],)
            node = Node('input', info.name, [], shape, info.name)
            self.nodes.append(node)
            self.values[info.name] = value_of(node, sizes, order)

    def read(self):
        """All nodes of the model, unfolded."""
        for tensor in self.graph.initializer: self.constants[tensor.name] = Constant(array_of(tensor))
        for info in list(self.graph.value_info) + list(self.graph.input) + list(self.graph.output):
            if fixed_sizes(info): self.shapes[info.name] = fixed_sizes(info)
        if self.graph.sparse_initializer: raise Refused('sparse constants are not known')
        self.read_inputs()
        for op in self.graph.node: self.read_op(op)
        for info in self.graph.output: self.read_output(info)
        return self.nodes

    def read_output(self, info):
        if info.name not in self.values: raise Refused('output %s: no node makes it from an input' % info.name)
        value = self.values[info.name]
        if any(axis != sorted(axis) for axis in value.axes):
            raise WrongLayout('output %s: is a flattened image, channels first: take the image itself as output, or %s' % (
                info.name, CHANNELS_LAST))
        value.node.keep = True

    def read_op(self, op):
        if op.domain not in ('', 'ai.onnx'): self.refuse(op, 'ops of %s are not known' % op.domain)
        if not op.output or not op.output[0]: self.refuse(op, 'it has no output')
        reader = getattr(self, 'op_' + op.op_type, None)
        if reader is None: self.refuse(op, 'this op is not known')
        reader(op)
        for name in op.output[1:]:
            if name and self.is_read(name): self.refuse(op, 'its second output is used')

    def is_read(self, name):
        return any(name in other.input for other in self.graph.node) or any(name == o.name for o in self.graph.output)

    # -- no nodes --

    def op_Identity(self, op): self.values[op.output[0]] = self.value(op, 0)
    op_Dropout = op_Identity

    def op_Cast(self, op):
        if self.attributes(op).get('to') != FLOAT: self.refuse(op, 'is known to float alone')
        self.op_Identity(op)

    def op_Reshape(self, op):
        value = self.value(op, 0)
        sizes = self.sizes_of(op, op.output[0]) if op.output[0] in self.shapes else self.reshaped(op, value.shape)
        self.values[op.output[0]] = reshape(value, sizes, '%s %s' % (op.op_type, name_of(op)))
    op_Flatten = op_Squeeze = op_Unsqueeze = op_Reshape

    def reshaped(self, op, sizes):
        """The sizes that a Reshape asks for: shape inference does not know them where they were computed."""
        if op.op_type != 'Reshape': self.refuse(op, 'its shape is dynamic')
        asked = self.constant(op, 1, 'sizes')
        if asked is None or asked.array.dtype.kind != 'i': self.refuse(op, 'its sizes are no integers')
        if self.attributes(op).get('allowzero'): self.refuse(op, 'allowzero is not known')
        asked = [int(x) for x in asked.array.ravel()]
        if any(x < -1 or (x == 0 and k >= len(sizes)) for k, x in enumerate(asked)):
            self.refuse(op, 'its sizes are wrong')
        made = [sizes[k] if x == 0 else x for k, x in enumerate(asked)]
        rest = math.prod(x for x in made if x > 0)
        return [math.prod(sizes) // max(rest, 1) if x == -1 else x for x in made]

    def op_Transpose(self, op):
        value = self.value(op, 0)
        order = list(self.attributes(op).get('perm', reversed(range(len(value.axes)))))
        if sorted(order) != list(range(len(value.axes))):
            self.refuse(op, 'perm is no order of %d axes' % len(value.axes))
        self.values[op.output[0]] = Value(value.node, value.atoms, [value.axes[k] for k in order])

    # -- quantised tensors --

    def quantisation(self, op, dtype):
        """Scales and zero points; those of uint8 as those of the int8 that is 128 less, and that shift."""
        scale, zero = self.constant(op, 1, 'scales'), self.constant(op, 2, 'zero points')
        if scale is None or scale.array.dtype.kind != 'f' or not scale.array.size:
            self.refuse(op, 'its scales are no numbers')
        points = np.zeros(1, dtype) if zero is None else zero.array
        if points.dtype not in (np.int8, np.uint8, np.int16, np.int32):
            self.refuse(op, 'integers of %s are not known' % points.dtype)
        shift = 128 if points.dtype == np.uint8 else 0
        if self.attributes(op).get('block_size'): self.refuse(op, 'scales of blocks are not known')
        return scale.array.astype(np.float32), points.astype(np.int64) - shift, shift

    def op_QuantizeLinear(self, op):
        value = self.value(op, 0)
        scale, zero, _ = self.quantisation(op, np.uint8)
        if scale.size != 1 or zero.size != 1: self.refuse(op, 'a tensor has one scale and one zero point')
        node = value.node
        is_wide = self.is_wide(op, zero.item())
        self.check_scale(op, scale.item(), zero.item())
        if is_wide and node.scale is None and node.low is None:
            node.low, node.high = -32767 * scale.item(), 32767 * scale.item()
        elif is_wide: pass
        elif node.scale is None: node.scale, node.zero = scale.item(), zero.item()
        elif (node.scale, node.zero) != (scale.item(), zero.item()):
            return self.add_like(op, 'requantize', value, scale=scale.item(), zero=zero.item())
        self.values[op.output[0]] = value

    def is_wide(self, op, zero):
        """Whether integers have 16 bits: these are a range, for a .ranges has scales of 8 bits alone."""
        is_wide = len(op.input) > 2 and op.input[2] in self.constants and self.constants[op.input[2]].array.dtype == np.int16
        if is_wide and zero: self.refuse(op, 'integers of 16 bits around %d are not known' % zero)
        return is_wide

    def check_scale(self, op, scale, zero):
        try: check_scale(op_as_node(op), scale, zero)
        except Refused as error: raise Refused('%s %s' % (op.op_type, str(error).split(' ', 1)[1]))

    def op_DequantizeLinear(self, op):
        if op.input and op.input[0] in self.values:
            value = self.value(op, 0)
            scale, zero, _ = self.quantisation(op, np.uint8)
            if scale.size != 1 or zero.size != 1: self.refuse(op, 'a tensor has one scale and one zero point')
            if not self.is_wide(op, zero.item()) and (value.node.scale, value.node.zero) != (scale.item(), zero.item()):
                self.refuse(op, 'its scale is not that of its QuantizeLinear')
            self.values[op.output[0]] = value
            return
        constant = self.constant(op, 0, 'integers')
        if constant is None: self.refuse(op, 'its integers are missing')
        scales, zero, shift = self.quantisation(op, constant.array.dtype)
        for scale in scales.ravel(): self.check_scale(op, scale.item(), 0)
        if zero.any() or constant.array.dtype not in (np.int8, np.uint8, np.int16, np.int32):
            self.refuse(op, 'constants have integers of 8, 16 or 32 bits around 0, not %s around %s' % (
                constant.array.dtype, ','.join(map(str, zero.ravel()[:4] + shift))))
        integers = constant.array.astype(np.int64) - shift
        axis = self.attributes(op).get('axis', 1) if scales.size > 1 else 0
        rank = integers.ndim
        if scales.size > 1 and (not -rank <= axis < rank or integers.shape[axis] != scales.size):
            self.refuse(op, '%d scales do not fit %s along axis %d' % (scales.size, by_x(integers.shape), axis))
        along = [1] * rank
        if scales.size > 1: along[axis] = scales.size
        numbers = (integers * scales.reshape(along if rank else ())).astype(np.float32)
        is_wide = constant.array.dtype == np.int16
        made = Constant(numbers) if is_wide else Constant(numbers, integers, scales.ravel(), axis % max(rank, 1))
        self.constants[op.output[0]] = made

    # -- weights --

    def weights(self, op, k, what='weights'):
        constant = self.constant(op, k, what)
        if constant is None: self.refuse(op, '%s are missing' % what)
        if constant.array.dtype.kind != 'f': self.refuse(op, '%s are of %s' % (what, constant.array.dtype))
        return constant

    def set_weights(self, op, node, weights, bias, arrange, channel_axis):
        """Give a node its weights; arrange makes the order of the files of that of the model. They stay integers where
        they are, and what the node reads is quantised."""
        channels = node.shape[-1]
        if bias is not None and bias.array.shape not in ((channels,), (1, channels), ()) :
            self.refuse(op, 'its biases are %s for %d channels' % (by_x(bias.array.shape), channels))
        biases = np.zeros(1, np.float32) if bias is None else bias.array.astype(np.float32).ravel()
        biases = np.broadcast_to(biases, (channels,))
        source = node.inputs[0]
        if weights.integers is None or source.scale is None or (weights.scales.size > 1 and weights.axis != channel_axis):
            node.weights = data_of('F32', arrange(weights.array.astype(np.float32)))
            node.bias = data_of('F32', biases)
            return
        steps = np.float64(source.scale) * weights.scales.astype(np.float64)
        if bias is not None and bias.integers is not None and bias.scales.size in (1, channels) and \
                np.allclose(bias.scales, steps, rtol=1e-5, atol=0):
            numbers = np.broadcast_to(bias.integers.ravel(), (channels,))
        else: numbers = np.rint(biases / steps)
        if np.abs(numbers).max(initial=0) > 2**31 - 1:
            self.refuse(op, 'a bias does not fit 32 bits at the scales of what it is added to')
        node.weights, node.scales = data_of('I8', arrange(weights.integers)), [s.item() for s in weights.scales]
        node.bias = data_of('I32', numbers)

    def windows(self, op, kernel, source, strides_default=None):
        """Stride, padding and dilation of an op, two of each; padding by what its output asks for."""
        keys = self.attributes(op)
        rank = len(kernel)

        def pair(key, default):
            numbers = list(keys.get(key, default))
            if len(numbers) != len(default): self.refuse(op, '%s must be %d numbers' % (key, len(default)))
            return numbers
        stride, dilation, pads = pair('strides', [1] * rank), pair('dilations', [1] * rank), pair('pads', [0] * 2 * rank)
        if min(stride + dilation + kernel) < 1 or max(stride + dilation + kernel) > 65535:
            self.refuse(op, 'kernel, stride and dilation must be 1 to 65535')
        auto = keys.get('auto_pad', b'NOTSET')
        made = self.sizes_of(op, op.output[0])[2:]
        before, behind = pads[:rank], pads[rank:]
        for k in range(rank):
            reach = dilation[k] * (kernel[k] - 1)
            if auto in (b'SAME_UPPER', b'SAME_LOWER'):
                before[k], behind[k], _ = pad_same(source[k], kernel[k], stride[k], dilation[k], auto == b'SAME_UPPER')
            elif auto == b'VALID': before[k] = behind[k] = 0
            if keys.get('ceil_mode'):
                behind[k] = max(behind[k], (made[k] - 1) * stride[k] + reach + 1 - source[k] - before[k])
        one = [0] * (2 - rank)
        return kernel + [1] * (2 - rank), stride + [1] * (2 - rank), before + one + behind + one, dilation + [1] * (2 - rank)

    def made_image(self, op, channels=None):
        sizes = self.sizes_of(op, op.output[0])
        if len(sizes) not in (3, 4) or sizes[0] != 1: self.refuse(op, 'makes %s, and must make an image' % by_x(sizes))
        return (sizes[2], sizes[3] if len(sizes) == 4 else 1, sizes[1])

    # -- nodes --

    def op_Conv(self, op):
        value, weights, bias = self.value(op, 0), self.weights(op, 1), self.constant(op, 2, 'biases')
        shape, made = self.image(op, value), self.made_image(op)
        sizes = list(weights.array.shape)
        groups = self.attributes(op).get('group', 1)
        if len(sizes) != len(value.axes): self.refuse(op, 'its weights are %s' % by_x(sizes))
        if groups not in (1, shape[2]): self.refuse(op, '%d groups of %d channels are not known' % (groups, shape[2]))
        is_depthwise = groups > 1
        if sizes[:2] != [made[2], 1 if is_depthwise else shape[2]]:
            self.refuse(op, 'its weights are %s for %d channels of %d' % (by_x(sizes), made[2], shape[2]))
        kernel = self.attributes(op).get('kernel_shape', sizes[2:])
        if list(kernel) != sizes[2:]:
            self.refuse(op, 'its weights are %s for a kernel of %s' % (by_x(sizes), by_x(kernel)))
        kernel, stride, pads, dilation = self.windows(op, sizes[2:], shape)
        node = self.add(op, 'depthwise' if is_depthwise else 'conv2d', [value.node], made)
        set_window(node, kernel, stride, pads, dilation)
        if is_depthwise: node.multiplier = made[2] // shape[2]

        def arrange(array):
            array = array.reshape(sizes[:2] + kernel)
            return array[:, 0].transpose(1, 2, 0) if is_depthwise else array.transpose(0, 2, 3, 1)
        self.set_weights(op, node, weights, bias, arrange, 0)

    def add_linear(self, op, value, weights, bias, is_transposed, factor=1.0):
        """weights: (K, N) of the model, or (N, K) where transposed."""
        terms = self.vector(op, value)
        sizes = list(weights.array.shape)
        if len(sizes) != 2 or sizes[is_transposed] != terms:
            self.refuse(op, 'its weights are %s for %d inputs' % (by_x(sizes), terms))
        channels = sizes[1 - is_transposed]
        made = self.sizes_of(op, op.output[0])
        if math.prod(made) != channels: self.refuse(op, 'makes %s of %d channels' % (by_x(made), channels))
        if factor != 1.0: weights = Constant(weights.array * np.float32(factor))
        node = self.add(op, 'linear', [value.node], (channels,))
        atoms, flat = value.atoms, value.flat()

        def arrange(array):
            rows = array if is_transposed else array.T
            rows = rows.reshape([channels] + [atoms[a] for a in flat])
            return rows.transpose([0] + [1 + flat.index(a) for a in range(len(atoms))]).reshape(channels, terms)
        self.set_weights(op, node, weights, bias, arrange, 1 - is_transposed)

    def op_Gemm(self, op):
        keys = self.attributes(op)
        bias = self.constant(op, 2, 'biases')
        if keys.get('transA'): self.refuse(op, 'transA is not known')
        alpha, beta = keys.get('alpha', 1.0), keys.get('beta', 1.0)
        if not np.isfinite([alpha, beta]).all(): self.refuse(op, 'alpha and beta must be finite')
        if bias is not None and beta != 1.0: bias = Constant(bias.array * np.float32(beta))
        self.add_linear(op, self.value(op, 0), self.weights(op, 1), bias, 1 if keys.get('transB') else 0, alpha)

    def op_MatMul(self, op): self.add_linear(op, self.value(op, 0), self.weights(op, 1), None, 0)

    def add_affine(self, op, value, factor, term):
        """factor x + term, a number for each channel: a depthwise convolution of 1 x 1, which is folded where it can be."""
        if len(value.axes) < 2 or value.axes[0]: self.refuse(op, 'reads %s' % by_x(value.shape))
        channels = value.shape[1]
        last = [len(value.atoms) - 1] if channels > 1 else []
        if value.axes[1] != last: self.refuse_layout(op, 'its channels are not the last axis')
        node = self.add_like(op, 'depthwise', value)
        node.is_affine = True
        if not len(node.shape) == 3: node.shape = (1, 1, node.elements)
        if node.shape[-1] != channels: self.refuse_layout(op, '%d channels of %s' % (channels, by_x(node.shape)))
        node.weights = data_of('F32', np.broadcast_to(factor, (channels,)).reshape(1, 1, channels))
        node.bias = data_of('F32', np.broadcast_to(term, (channels,)))

    def op_BatchNormalization(self, op):
        value = self.value(op, 0)
        scale, bias, mean, variance = (self.weights(op, k, what).array.astype(np.float64).ravel()
                                       for k, what in ((1, 'scales'), (2, 'biases'), (3, 'means'), (4, 'variances')))
        channels = value.shape[1] if len(value.axes) > 1 else 0
        if {a.size for a in (scale, bias, mean, variance)} != {channels}:
            self.refuse(op, 'its constants are not those of %d channels' % channels)
        if self.attributes(op).get('training_mode'): self.refuse(op, 'is in training mode')
        if not (variance + self.attributes(op).get('epsilon', 1e-5) > 0).all():
            self.refuse(op, 'a variance is not above 0')
        factor = scale / np.sqrt(variance + self.attributes(op).get('epsilon', 1e-5))
        self.add_affine(op, value, factor, bias - mean * factor)

    def per_channel(self, op, value, constant):
        """The constant operand of an elementwise op: a number, or one for each channel."""
        array = constant.array
        if array.dtype.kind != 'f': self.refuse(op, 'its constant is of %s' % array.dtype)
        channels = value.shape[1] if len(value.axes) > 1 else 0
        sizes = [1] * (len(value.axes) - array.ndim) + list(array.shape)
        if array.size == 1: return array.astype(np.float64).ravel()
        if len(sizes) != len(value.axes) or array.size != channels or sizes[1] != channels:
            self.refuse(op, 'a constant of %s beside %s is not known' % (by_x(array.shape), by_x(value.shape)))
        return array.astype(np.float64).ravel()

    def op_Add(self, op):
        if len(op.input) != 2: self.refuse(op, 'it has %d inputs' % len(op.input))
        known = [name in self.constants for name in op.input]
        if any(known):
            value, constant = self.value(op, known.index(False)), self.constants[op.input[known.index(True)]]
            number = self.per_channel(op, value, constant)
            factor, term = {'Add': (1, number), 'Sub': (-1 if known[0] else 1, number if known[0] else -number),
                            'Mul': (number, 0), 'Div': (1, 0)}[op.op_type]
            if op.op_type == 'Div':
                if known[0] or not number.all(): self.refuse(op, 'division of a constant, or by 0')
                factor = 1 / number
            return self.add_affine(op, value, factor, term)
        if op.op_type in ('Sub', 'Div'): self.refuse(op, 'of two tensors is not known')
        self.add_pair(op, 'add' if op.op_type == 'Add' else 'mul', self.value(op, 0), self.value(op, 1))
    op_Sub = op_Div = op_Mul = op_Add

    def add_pair(self, op, kind, a, b):
        sizes = [max(x, y) for x, y in zip(a.shape, b.shape)]
        if len(a.axes) != len(b.axes): self.refuse(op, '%s and %s are not known' % (by_x(a.shape), by_x(b.shape)))
        if b.shape == sizes != a.shape: a, b = b, a
        if a.shape == b.shape:
            if (a.atoms, a.axes) != (b.atoms, b.axes): self.refuse_layout(op, 'its inputs lie in different orders')
        else:
            channels = a.shape[1]
            is_row = a.shape == sizes and b.atoms == [channels] and b.axes[1] == [0] and a.axes[1] == [len(a.atoms) - 1]
            if not is_row: self.refuse(op, '%s beside %s is not known' % (by_x(a.shape), by_x(b.shape)))
        node = self.add_like(op, kind, a, [a, b])
        if kind == 'mul': fold_hardswish(node)

    def op_Relu(self, op):
        kind = op.op_type.lower()
        keys = self.attributes(op)
        if kind == 'hardsigmoid' and (abs(keys.get('alpha', 0.2) - 1 / 6) > 1e-6 or keys.get('beta', 0.5) != 0.5):
            self.refuse(op, 'is known with alpha 1/6 and beta 1/2 alone')
        self.add_like(op, kind, self.value(op, 0))
    op_Sigmoid = op_Tanh = op_HardSwish = op_HardSigmoid = op_Relu

    def op_Clip(self, op):
        keys = self.attributes(op)
        low, high = keys.get('min', -np.inf), keys.get('max', np.inf)
        if self.opset >= 11:
            low = (self.number_list(op, 1, 'bounds', 1) or [-np.inf])[0]
            high = (self.number_list(op, 2, 'bounds', 1) or [np.inf])[0]
        if low != 0 or (high != 6 and high < 3.4e38):
            self.refuse(op, 'from %g to %g is not known: 0 to 6, and from 0 on' % (low, high))
        self.add_like(op, 'relu6' if high == 6 else 'relu', self.value(op, 0))

    def op_MaxPool(self, op):
        value, keys = self.value(op, 0), self.attributes(op)
        shape, made = self.image(op, value), self.made_image(op)
        kernel = list(keys.get('kernel_shape', ()))
        if len(kernel) != len(value.axes) - 2: self.refuse(op, 'its kernel is %s' % by_x(kernel))
        if made[2] != shape[2]: self.refuse(op, 'makes %d channels of %d' % (made[2], shape[2]))
        kind = 'maxpool' if op.op_type == 'MaxPool' else 'avgpool'
        kernel, stride, pads, dilation = self.windows(op, kernel, shape)
        maker = value.node
        if kind == 'avgpool' and keys.get('count_include_pad') and any(pads):
            if keys.get('ceil_mode'): self.refuse(op, 'ceil_mode with count_include_pad is not known')
            maker, pads = self.add_pad(op, maker, pads), [0, 0, 0, 0]
        if dilation != [1, 1]: self.refuse(op, 'pools with dilation are not known')
        node = self.add(op, kind, [maker], made)
        set_window(node, kernel, stride, pads)
    op_AveragePool = op_MaxPool

    def add_pad(self, op, maker, pads):
        h, w, c = maker.shape
        shape = (h + pads[0] + pads[2], w + pads[1] + pads[3], c)
        if min(pads) < 0 or min(shape) < 1: self.refuse(op, 'negative padding is not known')
        node = Node('pad', name_of(op) + '_pad', [maker], shape, pad=tuple(pads), scale=maker.scale, zero=maker.zero)
        self.nodes.append(node)
        return node

    def op_Pad(self, op):
        value, keys = self.value(op, 0), self.attributes(op)
        shape = self.image(op, value)
        rank = len(value.axes)
        axes = list(range(rank))
        if self.opset >= 18 and len(op.input) > 3 and op.input[3]:
            axes = [a % rank for a in self.number_list(op, 3, 'axes', self.constant(op, 3, 'axes').array.size)]
        pads = self.number_list(op, 1, 'pads', 2 * len(axes)) if self.opset >= 11 else list(keys.get('pads', ()))
        filler = (self.number_list(op, 2, 'value', 1) or [0])[0] if self.opset >= 11 else keys.get('value', 0)
        if keys.get('mode', b'constant') != b'constant' or filler != 0:
            self.refuse(op, 'pads with something else than 0')
        if pads is None or len(pads) != 2 * len(axes): self.refuse(op, 'its pads are missing')
        whole = [[0, 0] for _ in range(4)]
        for k, axis in enumerate(axes): whole[axis] = [int(pads[k]), int(pads[k + len(axes)])]
        if any(whole[0] + whole[1]): self.refuse(op, 'pads the batch or the channels')
        node = self.add_pad(op, value.node, [whole[2][0], whole[3][0], whole[2][1], whole[3][1]])
        node.name, node.source = name_of(op), op.output[0]
        sizes = [1, shape[2], node.shape[0], node.shape[1]][:rank]
        self.values[op.output[0]] = value_of(node, sizes, image_order(rank))

    def op_GlobalAveragePool(self, op):
        value = self.value(op, 0)
        shape, sizes = self.image(op, value), self.sizes_of(op, op.output[0])
        if op.op_type == 'GlobalAveragePool': self.add(op, 'gavgpool', [value.node], shape[2:], sizes)
        else:
            set_window(self.add(op, 'maxpool', [value.node], (1, 1, shape[2]), sizes), shape[:2], (1, 1), (0, 0, 0, 0))
    op_GlobalMaxPool = op_GlobalAveragePool

    def op_ReduceMean(self, op):
        value, keys = self.value(op, 0), self.attributes(op)
        rank = len(value.axes)
        axes = keys.get('axes')
        if axes is None and len(op.input) > 1:
            axes = self.number_list(op, 1, 'axes', self.constant(op, 1, 'axes').array.size)
        if not axes and keys.get('noop_with_empty_axes'): return self.op_Identity(op)
        axes = {int(a) % rank for a in axes} if axes and rank else set(range(rank))
        sizes = value.shape
        wide = {k for k in range(1, rank) if sizes[k] > 1 and k in axes}
        kept = [k for k in range(1, rank) if k not in axes and sizes[k] > 1]
        if len(kept) > 1 or 0 in axes and sizes[0] > 1:
            self.refuse(op, 'a mean over other axes than height and width is not known')
        channel = kept[0] if kept else 1
        order = sorted(k for k in range(1, rank) if k != channel)
        if len(order) > 2: self.refuse(op, 'reads %s' % by_x(sizes))
        if not wide <= set(order): self.refuse(op, 'a mean over the channels is not known')
        if [a for axis in order + [channel] for a in value.axes[axis]] != list(range(len(value.atoms))):
            self.refuse_layout(op, 'the axes of what it reads lie in another order')
        image = [sizes[k] for k in order] + [1] * (2 - len(order)) + [sizes[channel]]
        view_as_image(value.node, image)
        made = [1 if k in axes else size for k, size in enumerate(sizes) if k not in axes or keys.get('keepdims', 1)]
        node = Node('gavgpool', name_of(op), [value.node], (sizes[channel],), op.output[0])
        self.nodes.append(node)
        self.values[op.output[0]] = value_of(node, made, range(len(made)))

    def op_Softmax(self, op):
        value = self.value(op, 0)
        axis = self.attributes(op).get('axis', -1 if self.opset >= 13 else 1)
        if not -len(value.axes) <= axis < len(value.axes): self.refuse(op, 'there is no axis %d' % axis)
        axis %= len(value.axes)
        size = value.shape[axis]
        is_last = value.axes[axis] == [len(value.atoms) - 1] or sum(map(bool, value.axes)) <= 1
        if not is_last or (self.opset < 13 and math.prod(value.shape[axis:]) != size):
            self.refuse_layout(op, 'is known over the channels alone')
        node = self.add_like(op, 'softmax', value)
        if node.shape[-1] != size and len(node.shape) == 1: self.refuse(op, 'is known over the channels alone')

    def op_Concat(self, op):
        values = [self.value(op, k) for k in range(len(op.input))]
        axis = self.attributes(op).get('axis', 1)
        rank = len(values[0].axes) if values else 0
        if not values or any(len(v.axes) != rank for v in values) or not -rank <= axis < rank:
            self.refuse(op, 'its inputs do not fit')
        axis %= rank
        if rank == 2:
            for v in values:
                self.vector(op, v)
                if v.flat() != sorted(v.flat()): self.refuse_layout(op, 'joins flattened images, channels first: %s' % JOIN_IMAGES)
            if axis != 1: self.refuse(op, 'joins samples')
            self.add(op, 'concat', [v.node for v in values], (sum(v.shape[1] for v in values),), axis=0)
            return
        shapes = [self.image(op, v) for v in values]
        place = {1: 2, 2: 0, 3: 1}.get(axis)
        if place is None: self.refuse(op, 'joins samples')
        made = list(shapes[0])
        made[place] = sum(shape[place] for shape in shapes)
        if any(a != b for shape in shapes for k, (a, b) in enumerate(zip(shape, made)) if k != place):
            self.refuse(op, 'joins %s' % ' and '.join(map(by_x, shapes)))
        self.add(op, 'concat', [v.node for v in values], made, axis=place)

    def op_Resize(self, op):
        value, keys = self.value(op, 0), self.attributes(op)
        shape, made = self.image(op, value), self.made_image(op)
        if keys.get('mode', b'nearest') != b'nearest': self.refuse(op, 'is known with mode nearest alone')
        factor = [b // a for a, b in zip(shape[:2], made[:2])]
        if made[2] != shape[2] or any(a * f != b or f < 1 for a, f, b in zip(shape, factor, made)):
            self.refuse(op, 'makes %s of %s: is known for whole factors alone' % (by_x(made), by_x(shape)))
        mode, rounding = keys.get('coordinate_transformation_mode', b'half_pixel'), keys.get('nearest_mode', b'round_prefer_floor')
        if op.op_type == 'Upsample': mode, rounding = b'asymmetric', b'floor'
        for f, size in zip(factor, made):
            at = np.arange(size)
            where = {b'asymmetric': at / f, b'half_pixel': (at + 0.5) / f - 0.5,
                     b'pytorch_half_pixel': (at + 0.5) / f - 0.5}.get(mode)
            if where is None: self.refuse(op, '%s is not known' % mode.decode('ascii', 'replace'))
            near = {b'floor': np.floor, b'ceil': np.ceil, b'round_prefer_floor': lambda x: np.ceil(x - 0.5),
                    b'round_prefer_ceil': lambda x: np.floor(x + 0.5)}.get(rounding)
            if near is None or (np.clip(near(where), 0, size // f - 1) != at // f).any():
                self.refuse(op, 'its rounding is not that of row i / %d for row i' % f)
        self.add(op, 'upsample', [value.node], made, stride=tuple(factor))
    op_Upsample = op_Resize


# -- helpers --

def name_of(op): return op.name or next((name for name in op.output if name), '?')
def op_as_node(op): return type('', (), {'op': op.op_type, 'name': name_of(op)})
def data_of(dtype, array):
    array = np.ascontiguousarray(array).astype(NUMPY_OF[dtype])
    return Data(dtype, array.shape, array.tobytes())


def array_of(tensor):
    try: return numpy_helper.to_array(tensor)
    except Exception as error: raise Refused('constant %s: %s' % (tensor.name, in_a_line(error)))


def array_of_data(data): return np.frombuffer(data.raw, NUMPY_OF[data.dtype]).reshape(data.shape)


# -- what is constant --

def opset_of(model): return max([o.version for o in model.opset_import if o.domain in ('', 'ai.onnx')] or [0])
def fixed_sizes(info):
    """The sizes of a tensor; None where one is not fixed."""
    kind = info.type.tensor_type
    sizes = [d.dim_value if d.WhichOneof('value') == 'dim_value' else 0 for d in kind.shape.dim]
    return sizes if kind.HasField('shape') and all(size > 0 for size in sizes) else None


def refuse_op(op, why): raise Refused('%s %s: %s' % (op.op_type, name_of(op), why))


def evaluate(op, opset, arrays):
    """What an op makes of constants."""
    type_of = onnx.helper.np_dtype_to_tensor_dtype
    inputs = [onnx.helper.make_tensor_value_info(n, type_of(a.dtype), a.shape) for n, a in arrays.items()]
    outputs = [onnx.helper.make_empty_tensor_value_info(n) for n in op.output if n]
    graph = onnx.helper.make_graph([op], 'constant', inputs, outputs)
    try:
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', opset)])
        with np.errstate(all='ignore'): made = ReferenceEvaluator(model).run(None, arrays)
    except Exception as error:      # of the evaluator, whatever it raises
        refuse_op(op, 'is constant, and cannot be computed: %s' % in_a_line(error))
    made = [np.asarray(array) for array in made]
    if any(array.size > MOST_FOLDED or array.dtype.kind not in 'fiub' for array in made):
        refuse_op(op, 'its constant is too large, or no number')
    return dict(zip([n for n in op.output if n], made))


def fold_op(op, model, constants, sizes):
    """{name: array} of an op that follows from constants and fixed shapes alone, else None."""
    if op.domain not in ('', 'ai.onnx'): return None
    if op.op_type == 'DequantizeLinear' and not any(a.name == 'block_size' and a.i for a in op.attribute): return None
    if any(a.type in (a.GRAPH, a.GRAPHS) for a in op.attribute): return None
    if op.op_type == 'Shape' and op.input[0] in sizes:
        keys = {a.name: a.i for a in op.attribute}
        return {op.output[0]: np.array(sizes[op.input[0]][keys.get('start', 0):keys.get('end', None)], np.int64)}
    if not all(name in constants for name in op.input if name): return None
    return evaluate(op, opset_of(model), {name: constants[name] for name in op.input if name})


def fold_constants(model):
    """The model with fixed shapes, without ops that are constant: what is folded fixes further shapes."""
    constants = {tensor.name: array_of(tensor) for tensor in model.graph.initializer}
    while True:
        try: model = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        except Exception as error: raise Refused('is refused by onnx: %s' % in_a_line(error))
        graph, folded = model.graph, 0
        sizes = {info.name: fixed_sizes(info) for info in list(graph.value_info) + list(graph.input) + list(graph.output)}
        sizes = {name: size for name, size in sizes.items() if size}
        for op in list(graph.node):
            made = fold_op(op, model, constants, sizes)
            if made is None: continue
            constants.update(made)
            graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in made.items())
            graph.node.remove(op)
            folded += 1
        if not folded: return model


def fold_hardswish(node):
    """x HardSigmoid(x) is hardswish."""
    for k in (0, 1):
        gate, other = node.inputs[k], node.inputs[1 - k]
        if gate.op == 'hardsigmoid' and gate.inputs[0] is other and gate.scale is None:
            node.op, node.inputs = 'hardswish', [other]
            return


def fold_affine(nodes):
    """Fold factor x + term into the convolution or dense layer before it, whose result nobody else reads."""
    readers = {}
    for node in nodes:
        for maker in node.inputs: readers[id(maker)] = readers.get(id(maker), 0) + 1
    gone = {}
    for node in nodes:
        node.inputs = [gone.get(id(maker), maker) for maker in node.inputs]
        maker = node.inputs[0] if node.inputs else None
        if not node.is_affine or maker.op not in WEIGHTED or maker.weights.dtype != 'F32' or maker.keep: continue
        if readers[id(maker)] != 1 or maker.scale is not None: continue
        factor, term = (array_of_data(d).astype(np.float64).ravel() for d in (node.weights, node.bias))
        weights = array_of_data(maker.weights)
        along = factor if maker.op == 'depthwise' else factor.reshape([-1] + [1] * (weights.ndim - 1))
        maker.bias = data_of('F32', array_of_data(maker.bias) * factor + term)
        maker.weights = data_of('F32', weights * along)
        take_output(maker, node)
        gone[id(node)] = maker
        readers[id(maker)] = readers.get(id(node), 0)
    return [node for node in nodes if id(node) not in gone]


def check_names(graph):
    names = [name for op in graph.node for name in (op.name, op.op_type, op.domain, *op.input, *op.output)]
    names += [a.name for op in graph.node for a in op.attribute]
    names += [i.name for part in (graph.initializer, graph.input, graph.output, graph.value_info) for i in part]
    for name in names:
        if not isinstance(name, str): raise Refused('a name is no UTF-8: %r' % name)


def load(path):
    """The model with inferred shapes, checked as far as onnx does."""
    data = read_model(path)
    try:
        model = onnx.load_model_from_string(data)
    except Exception: raise Refused('is no ONNX model, or damaged')
    check_names(model.graph)
    external = [t for t in model.graph.initializer if t.data_location == t.EXTERNAL]
    if external: load_external(model, external, path)
    for info in model.graph.input:
        dims = info.type.tensor_type.shape.dim
        if dims and dims[0].WhichOneof('value') == 'dim_param': dims[0].dim_value = 1      # the batch
    try: onnx.checker.check_model(model)
    except Exception as error: raise Refused('is refused by onnx: %s' % in_a_line(error))
    return fold_constants(model)


def load_external(model, tensors, path):
    total = 0
    for tensor in tensors:
        keys = {entry.key: entry.value for entry in tensor.external_data}
        total += int(keys['length']) if keys.get('length', '').isdigit() else 0
    if total > MOST_BYTES: raise Refused('its weights are more than 2 GiB')
    try: onnx.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
    except Exception as error: raise Refused('its weights cannot be read: %s' % in_a_line(error))


def import_model(model):
    """The finished nodes of a model."""
    with np.errstate(all='ignore'):         # what is no finite number is refused where it is written
        try: nodes = Importer(model, False).read()
        except WrongLayout as wrong:
            try: nodes = Importer(model, True).read()
            except WrongLayout: raise wrong
        return finish(fold_affine(nodes))


# -- ranges --

def inputs_of(model):
    """{input: sizes of a sample}, in which axis 0 is the batch where there are others, and {input: all sizes}."""
    initial = {i.name for i in model.graph.initializer}
    sizes_of = lambda info: [d.dim_value for d in info.type.tensor_type.shape.dim]
    inputs = {info.name: sizes_of(info) for info in model.graph.input if info.name not in initial}
    return {name: sizes[1:] if len(sizes) > 1 else sizes for name, sizes in inputs.items()}, inputs


def measure_ranges(model, nodes, path):
    """Set low and high of every node from what ONNX Runtime computes of samples; returns sentences."""
    try: import onnxruntime
    except ImportError as missing: raise Refused('--calibrate: %s (pip install onnxruntime)' % missing)
    sizes, whole = inputs_of(model)
    samples, notes = calibration.read_samples(path, sizes)
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    readings = {node.source: node for node in nodes if node.source is not None}      # all but what is made here
    known = {o.name for o in watched.graph.output} | set(samples)
    for name in readings:
        if name not in known: watched.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    names = [name for name in readings if name not in samples]
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for node in nodes: node.low = node.high = None      # of 16 bits, if any
    try:
        session = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=['CPUExecutionProvider'])
        for k in range(len(next(iter(samples.values())))):
            one = {name: array[k].reshape(whole[name]) for name, array in samples.items()}
            made = dict(one, **dict(zip(names, session.run(names, one))))
            for name, node in readings.items(): calibration.observe(node, numbers_of(node, made[name]))
    except Refused: raise
    except Exception as error: raise Refused('ONNX Runtime refuses it: %s' % in_a_line(error))
    return notes + calibration.finish_ranges(nodes, path)


def numbers_of(node, array):
    """What an array says; a QuantizeLinear makes integers."""
    if array.dtype.kind not in 'iu': return array
    return (array.astype(np.float64) - (128 if array.dtype == np.uint8 else 0) - node.zero) * node.scale


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model', metavar='MODEL.onnx')
    parser.add_argument('-o', metavar='NAME', dest='name', help='files are NAME.tlg and so on (MODEL)')
    parser.add_argument('--calibrate', metavar='DATA.npz', help='samples for each input, for the ranges')
    options = parser.parse_args(arguments)

    def work():
        model = load(options.model)
        nodes = import_model(model)
        notes = measure_ranges(model, nodes, options.calibrate) if options.calibrate else []
        write_model(nodes, options.name or os.path.splitext(options.model)[0], 'import_onnx.py, costs in FLOP')
        tell('import_onnx', notes)
    return run('import_onnx', options.model, work)


if __name__ == '__main__':
    sys.exit(main())
