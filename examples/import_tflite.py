#!/usr/bin/env python3
"""Read a trained TFLite model and write NAME.tlg, NAME.safetensors and NAME.ranges, for planning and for C.

    import_tflite.py MODEL.tflite [-o NAME] [--calibrate DATA.npz]
    import_tflite.py MODEL.tflite --tflm-plan OUT.tflite [--tl-pack build/tl_pack]

Plain Python 3: needs no package, but numpy and an interpreter of TensorFlow Lite (ai-edge-litert, tflite-runtime or
tensorflow) for --calibrate. The files are those of tiny_model.py.

  models    int8 with int32 biases, or float; inputs and outputs may be float or uint8 where QUANTIZE and DEQUANTIZE
            stand behind and before them. Scales and zero points are those of the model. Weights of int8 behind floats
            (dynamic range), and of f16, become floats. One graph, one sample
  folded    RELU and RELU6, PAD; RESHAPE and its like, QUANTIZE and DEQUANTIZE are no nodes. A QUANTIZE from one scale
            of int8 to another is a node of op requantize
  ranges    a float .tflite has none. --calibrate: DATA.npz holds an array for each input, by its name (or one without a
            name, arr_0), samples along axis 0; the least and the largest number of each tensor over all samples

--tflm-plan writes the same model with a plan for TensorFlow Lite Micro: where each tensor lies in its arena, placed by
tl_pack (make build/tl_pack). Users of TFLM read OUT.tflite as they read MODEL.tflite, and need a smaller arena.

What is not known is refused with one sentence that names op and node; nothing is written then.
"""
import argparse, csv, importlib, math, os, struct, subprocess, sys, tempfile, warnings

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from flatbuffer import Damaged, Writer, read_root
from tiny_model import (Data, MOST_BYTES, Node, Refused, WrongFile, by_x, check_scale, finish, floats, integers, pad_same, read_model,
                        run, set_window, tell, view_as_image, write_file, write_model)

# Numbers of ops in the schema, from 0 on.
OPS = '''ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM
MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS
SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN
EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2
GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG
SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT
UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU
SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE
MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL'''.split()
TYPES = 'FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64'.split()
FORMS = {'FLOAT32': 'f', 'FLOAT16': 'e', 'INT32': 'i', 'UINT8': 'B', 'INT64': 'q', 'INT16': 'h', 'INT8': 'b'}
ACTIVATIONS = 'none', 'relu', None, 'relu6'
IDENTIFIER = b'TFL3'
PLAN_NAME = 'OfflineMemoryAllocation'


class Tensor:
    """A tensor of the schema: its numbers are those of constants."""

    def __init__(self, table, buffers, index):
        self.shape = table.numbers(0, 'i') or []
        kind = table.number(1, 'b')
        self.type = TYPES[kind] if 0 <= kind < len(TYPES) else 'type %d' % kind
        self.name = table.text(3) or 'tensor_%d' % index
        buffer = table.number(2, 'I')
        if buffer >= len(buffers): raise Damaged('tensor %s has no buffer' % self.name)
        self.raw = buffers[buffer].raw(0)
        quantisation = table.table(4)
        self.scales = quantisation.numbers(2, 'f') or [] if quantisation else []
        self.zeros = quantisation.numbers(3, 'q') or [] if quantisation else []
        self.axis = quantisation.number(6, 'i') if quantisation else 0
        self.is_variable, self.is_sparse = table.number(5, 'B'), table.find(6) != 0
        self.elements = math.prod(self.shape)
        self.is_dynamic = any(size < 1 for size in self.shape)
        self.signature = table.numbers(7, 'i') or []    # -1 = not fixed; the shape is that of one sample then

    def numbers(self):
        form = FORMS[self.type]
        return list(struct.unpack('<%d%s' % (self.elements, form), self.raw))


class Operator:
    def __init__(self, table, codes, tensors):
        code = table.number(0, 'I')
        if code >= len(codes): raise Damaged('an op has no code')
        number = max(codes[code].number(0, 'b'), codes[code].number(3, 'i'))
        self.kind = OPS[number] if 0 <= number < len(OPS) else 'op %d' % number
        if self.kind == 'CUSTOM': self.kind = 'custom op ' + codes[code].text(1)
        self.inputs, self.outputs = table.numbers(1, 'i') or [], table.numbers(2, 'i') or []
        for index in self.inputs + self.outputs:
            if not -1 <= index < len(tensors): raise Damaged('%s reads or makes a tensor that is not there' % self.kind)
        self.options = table.table(4) or NoOptions()
        self.name = tensors[self.outputs[0]].name if self.outputs and self.outputs[0] >= 0 else '?'


class NoOptions:
    """Of an op whose options are left out: all of them are defaults."""
    def number(self, field, form, default=0): return default
    def numbers(self, field, form): return None


class Model:
    """The one graph of a file."""

    def __init__(self, data):
        self.root = read_root(data, IDENTIFIER)
        if self.root.number(0, 'I') != 3:
            raise Refused('is of version %d of the schema, not 3' % self.root.number(0, 'I'))
        graphs, self.buffers = self.root.tables(2), self.root.tables(4)
        if len(graphs) != 1: raise Refused('has %d graphs, and must have one' % len(graphs))
        if any(buffer.number(1, 'Q') > 1 for buffer in self.buffers):
            raise Refused('its buffers lie behind the file, as above 2 GiB')
        graph = graphs[0]
        self.tensors = [Tensor(table, self.buffers, k) for k, table in enumerate(graph.tables(0))]
        codes = self.root.tables(1)
        self.operators = [Operator(table, codes, self.tensors) for table in graph.tables(3)]
        self.inputs, self.outputs = graph.numbers(1, 'i') or [], graph.numbers(2, 'i') or []
        for index in self.inputs + self.outputs:
            if not 0 <= index < len(self.tensors): raise Damaged('an input or an output is a tensor that is not there')
            tensor = self.tensors[index]
            if tensor.is_dynamic or (index in self.inputs and any(size < 0 for size in tensor.signature[1:])):
                raise Refused('tensor %s: its shape is dynamic' % tensor.name)


def load(data):
    try: return Model(data)
    except Damaged as damage: raise Refused('is damaged, or no .tflite: %s' % damage)


class Importer:
    def __init__(self, model):
        self.model, self.tensors = model, model.tensors
        self.values, self.constants, self.nodes = {}, {}, []

    def refuse(self, op, why): raise Refused('%s %s: %s' % (op.kind, op.name, why))

    def read(self):
        for index in self.model.inputs: self.read_input(index)
        for op in self.model.operators: self.read_operator(op)
        for index in self.model.outputs:
            if index not in self.values:
                raise Refused('output %s: no op makes it from an input' % self.tensors[index].name)
            self.values[index].keep = True
        return self.nodes

    def read_input(self, index):
        tensor = self.tensors[index]
        if tensor.raw: raise Refused('input %s: is a constant' % tensor.name)
        if tensor.type not in ('FLOAT32', 'INT8', 'UINT8'):
            raise Refused('input %s: %s is not known' % (tensor.name, tensor.type))
        if not tensor.shape or tensor.shape[0] != 1 or len(tensor.shape) > 4:
            raise Refused('input %s: is %s, and must be one sample of a vector or an image' % (tensor.name, by_x(tensor.shape)))
        if index in self.values: raise Refused('input %s: is listed twice' % tensor.name)
        shape = tensor.shape[1:] if len(tensor.shape) == 4 else [tensor.elements]
        node = Node('input', tensor.name, [], shape, index)
        node.scale, node.zero = self.scale_of(tensor, 'input')
        self.nodes.append(node)
        self.values[index] = node

    def scale_of(self, tensor, what):
        """Scale and zero point of a tensor, of uint8 those of the int8 that is 128 less; None, None of floats."""
        if tensor.type not in ('INT8', 'UINT8'): return None, None
        if len(tensor.scales) != 1 or len(tensor.zeros) != 1:
            raise Refused('%s %s: has %d scales and %d zero points, and must have one' % (
                what, tensor.name, len(tensor.scales), len(tensor.zeros)))
        zero = tensor.zeros[0] - (128 if tensor.type == 'UINT8' else 0)
        check_scale(Named(what, tensor.name), tensor.scales[0], zero)
        return tensor.scales[0], zero

    def read_operator(self, op):
        reader = READERS.get(op.kind)
        if op.kind in SHAPE_OPS and all(0 <= k and self.tensors[k].type in ('INT32', 'INT64') for k in op.outputs): return
        if reader is None: self.refuse(op, 'this op is not known')
        if len(op.outputs) != 1 or op.outputs[0] < 0:
            self.refuse(op, 'has %d outputs, and must have one' % len(op.outputs))
        out = self.tensors[op.outputs[0]]
        if out.is_dynamic: self.refuse(op, 'its shape is dynamic')
        if out.is_variable: self.refuse(op, 'variables are not known')
        if op.outputs[0] in self.values or op.outputs[0] in self.constants:
            self.refuse(op, 'makes a tensor that is there already')
        if not out.shape or out.shape[0] != 1 and reader != Importer.dequantize:
            self.refuse(op, 'makes %s, and must make one sample' % by_x(out.shape))
        reader(self, op)

    # -- operands --

    def value(self, op, k):
        index = op.inputs[k] if k < len(op.inputs) else -1
        if index not in self.values:
            self.refuse(op, 'its input %d is %s' % (k, 'missing' if index < 0 else 'a constant, or not made yet'))
        return self.values[index]

    def tensor(self, op, k):
        index = op.inputs[k] if k < len(op.inputs) else -1
        return self.tensors[index] if index >= 0 else None

    def out(self, op): return self.tensors[op.outputs[0]]

    def constant(self, op, k, what):
        """A tensor with numbers; None where it is left out."""
        tensor = self.tensor(op, k)
        if tensor is None: return None
        if op.inputs[k] in self.values: self.refuse(op, '%s are computed, and must be constant' % what)
        if tensor.type not in FORMS or tensor.is_sparse or any(size < 1 for size in tensor.shape):
            self.refuse(op, '%s of %s, %s are not known' % (what, by_x(tensor.shape), 'sparse' if tensor.is_sparse else tensor.type))
        if op.inputs[k] not in self.constants and len(tensor.raw) != tensor.elements * struct.calcsize('<' + FORMS[tensor.type]):
            self.refuse(op, '%s are %d bytes, and their shape is %s of %s' % (what, len(tensor.raw), by_x(tensor.shape), tensor.type))
        return tensor

    def sizes(self, op, k, what, count):
        """Integers of a constant operand."""
        tensor = self.constant(op, k, what)
        if tensor is None or tensor.type not in ('INT32', 'INT64') or (count and tensor.elements != count):
            self.refuse(op, '%s must be %s integers' % (what, count or 'some'))
        return tensor.numbers()

    def image(self, op, k, ranks=(4,)):
        """The (H, W, C) that an operand is."""
        node, tensor = self.value(op, k), self.tensor(op, k)
        if len(tensor.shape) not in ranks or tensor.shape[0] != 1:
            self.refuse(op, 'reads %s, and must read an image' % by_x(tensor.shape))
        shape = self.as_image(op, tensor)
        view_as_image(node, shape)
        return shape

    def as_image(self, op, tensor):
        """The sizes of an image. A signal of three axes is one row of L pixels, as Keras convolves it, or one column where
        that is what an operand of the op is."""
        sizes = tensor.shape[1:]
        if len(sizes) != 2: return sizes
        return [sizes[0], 1, sizes[1]] if self.is_column(op) else [1, *sizes]

    def is_column(self, op):
        for index in op.inputs:
            shape = self.values[index].shape if index in self.values else ()
            if len(shape) == 3 and len(self.tensors[index].shape) == 3: return shape[0] > 1 and shape[1] == 1
        return False

    def axis(self, op, axis, rank):
        """An axis from 0 on; a negative one counts from the last."""
        if not -rank <= axis < rank: self.refuse(op, 'there is no axis %d of %d' % (axis, rank))
        return axis % rank

    def made_image(self, op):
        shape = self.out(op).shape
        if len(shape) != 4: self.refuse(op, 'makes %s, and must make an image' % by_x(shape))
        return shape[1:]

    def check_types(self, op, count):
        """All tensors that an op reads and makes are of int8, or of float."""
        for k in range(count): self.value(op, k)
        kinds = {self.tensor(op, k).type for k in range(count)} | {self.out(op).type}
        if kinds not in ({'INT8'}, {'FLOAT32'}):
            self.refuse(op, 'reads and makes %s: is known of INT8 and of FLOAT32 alone' % ', '.join(sorted(kinds)))

    def activation(self, op, field):
        number = op.options.number(field, 'b')
        if not 0 <= number < len(ACTIVATIONS) or ACTIVATIONS[number] is None:
            self.refuse(op, 'activation %d is not known' % number)
        return ACTIVATIONS[number]

    def add(self, op, kind, inputs, shape, **geometry):
        out = self.out(op)
        node = Node(kind, op.name, inputs, shape, op.outputs[0], **geometry)
        if node.elements != out.elements:
            self.refuse(op, 'makes %s, and its output is %s' % (by_x(shape), by_x(out.shape)))
        node.scale, node.zero = self.scale_of(out, op.kind)
        self.nodes.append(node)
        self.values[op.outputs[0]] = node
        return node

    # -- no nodes --

    def reshape(self, op):
        node = self.value(op, 0)
        if node.elements != self.out(op).elements:
            self.refuse(op, 'makes %s of %s' % (by_x(self.out(op).shape), by_x(node.shape)))
        if self.tensor(op, 0).type != self.out(op).type: self.refuse(op, 'changes the type')
        self.values[op.outputs[0]] = node

    def quantize(self, op):
        node, taken, out = self.value(op, 0), self.tensor(op, 0), self.out(op)
        if out.type not in ('INT8', 'UINT8') or taken.type not in ('FLOAT32', 'INT8', 'UINT8'):
            self.refuse(op, 'from %s to %s is not known' % (taken.type, out.type))
        if taken.shape != out.shape: self.refuse(op, 'changes the shape')
        scale, zero = self.scale_of(out, op.kind)
        if node.scale is None: node.scale, node.zero = scale, zero
        if (node.scale, node.zero) != (scale, zero): self.add(op, 'requantize', [node], node.shape)
        else: self.values[op.outputs[0]] = node

    def dequantize(self, op):
        tensor = self.tensor(op, 0)
        if tensor is None: self.refuse(op, 'its input is missing')
        if op.inputs[0] not in self.values:
            constant = self.constant(op, 0, 'its numbers')
            if constant.type != 'FLOAT16' or constant.shape != self.out(op).shape:
                self.refuse(op, 'of constant %s is not known' % constant.type)
            self.constants[op.outputs[0]] = constant.numbers()
            return
        if tensor.type not in ('INT8', 'UINT8') or self.out(op).type != 'FLOAT32':
            self.refuse(op, 'of %s is not known' % tensor.type)
        if tensor.shape != self.out(op).shape: self.refuse(op, 'changes the shape')
        self.values[op.outputs[0]] = self.values[op.inputs[0]]

    # -- weights --

    def float_numbers(self, op, k, tensor, channel_axis):
        """The numbers of a constant as floats."""
        if op.inputs[k] in self.constants: return self.constants[op.inputs[k]]
        if tensor.type in ('FLOAT32', 'FLOAT16'): return tensor.numbers()
        if tensor.type != 'INT8': self.refuse(op, 'weights of %s beside floats are not known' % tensor.type)
        scales = self.weight_scales(op, tensor, channel_axis)
        behind = math.prod(tensor.shape[channel_axis + 1:])
        return [q * scales[i // behind % len(scales)] for i, q in enumerate(tensor.numbers())]

    def weight_scales(self, op, tensor, channel_axis):
        if any(tensor.zeros) or len(tensor.zeros) not in (0, 1, len(tensor.scales)):
            self.refuse(op, 'its weights have a zero point that is not 0')
        if len(tensor.scales) not in (1, tensor.shape[channel_axis]):
            self.refuse(op, 'its weights have %d scales' % len(tensor.scales))
        if len(tensor.scales) > 1 and tensor.axis != channel_axis:
            self.refuse(op, 'its weights have scales along axis %d' % tensor.axis)
        for scale in tensor.scales: check_scale(Named(op.kind, op.name), scale)
        return tensor.scales

    def set_weights(self, op, node, shape, channel_axis):
        """Weights and biases as the files have them: their order is that of TFLite."""
        weights, bias, channels = self.constant(op, 1, 'weights'), self.constant(op, 2, 'biases'), node.shape[-1]
        if weights is None: self.refuse(op, 'weights are missing')
        if bias is not None and bias.elements != channels:
            self.refuse(op, 'it has %d biases for %d channels' % (bias.elements, channels))
        if self.tensor(op, 0).type == 'FLOAT32':
            if weights.type == 'FLOAT32' and op.inputs[1] not in self.constants: node.weights = Data('F32', shape, weights.raw)
            else: node.weights = floats(shape, self.float_numbers(op, 1, weights, channel_axis))
            node.bias = floats((channels,), self.float_numbers(op, 2, bias, 0) if bias else [0.0] * channels)
            return
        if weights.type != 'INT8' or (bias and bias.type != 'INT32'):
            self.refuse(op, 'weights of %s and biases of %s beside int8 are not known' % (weights.type, bias.type if bias else 'none'))
        node.scales = self.weight_scales(op, weights, channel_axis)
        node.weights = Data('I8', shape, weights.raw)
        node.bias = integers((channels,), bias.numbers() if bias else [0] * channels)
        for k, scale in enumerate(bias.scales if bias else []):     # as TFLite asks: what it adds up differs by less than 2 %
            step = node.inputs[0].scale * node.scales[k % len(node.scales)]
            if not abs(scale - step) <= 0.02 * node.scale:
                self.refuse(op, 'its biases have a scale of %g, and must have %g' % (scale, step))

    def place_window(self, op, node, kernel, dilation):
        stride, padding = [op.options.number(2, 'i'), op.options.number(1, 'i')], op.options.number(0, 'b')
        if min(stride + kernel + dilation) < 1 or max(stride + kernel + dilation) > 65535 or padding not in (0, 1):
            self.refuse(op, 'kernel %s, stride %s, dilation %s, padding %d are not known' % (
                by_x(kernel), by_x(stride), by_x(dilation), padding))
        pads = [(0, 0)] * 2
        if padding == 0:
            pads = [pad_same(node.inputs[0].shape[k], kernel[k], stride[k], dilation[k])[:2] for k in (0, 1)]
        set_window(node, kernel, stride, [pads[0][0], pads[1][0], pads[0][1], pads[1][1]], dilation)

    # -- nodes --

    def conv(self, op):
        self.check_types(op, 1)
        shape, made, weights = self.image(op, 0), self.made_image(op), self.constant(op, 1, 'weights')
        is_depthwise = op.kind == 'DEPTHWISE_CONV_2D'
        if weights is None or len(weights.shape) != 4: self.refuse(op, 'its weights are missing, or no four axes')
        asked = [1] + weights.shape[1:3] + [made[2]] if is_depthwise else [made[2]] + weights.shape[1:3] + [shape[2]]
        if weights.shape != asked:
            self.refuse(op, 'its weights are %s, and must be %s' % (by_x(weights.shape), by_x(asked)))
        if is_depthwise and made[2] % shape[2]: self.refuse(op, 'makes %d channels of %d' % (made[2], shape[2]))
        first = 5 if is_depthwise else 4
        kind, act = 'depthwise' if is_depthwise else 'conv2d', self.activation(op, first - 1)
        node = self.add(op, kind, [self.value(op, 0)], made, act=act)
        if is_depthwise: node.multiplier = made[2] // shape[2]
        dilation = [op.options.number(first + 1, 'i', 1), op.options.number(first, 'i', 1)]
        self.place_window(op, node, weights.shape[1:3], dilation)
        self.set_weights(op, node, weights.shape[1:] if is_depthwise else weights.shape, 3 if is_depthwise else 0)

    def fully_connected(self, op):
        self.check_types(op, 1)
        node, weights = self.value(op, 0), self.constant(op, 1, 'weights')
        if op.options.number(1, 'b'): self.refuse(op, 'shuffled weights are not known')
        if weights is None or len(weights.shape) != 2 or weights.shape[1] != node.elements:
            self.refuse(op, 'its weights are %s for %d inputs' % (by_x(weights.shape) if weights else 'missing', node.elements))
        made = self.add(op, 'linear', [node], (weights.shape[0],), act=self.activation(op, 0))
        self.set_weights(op, made, weights.shape, 0)

    def pool(self, op):
        self.check_types(op, 1)
        shape, made = self.image(op, 0), self.made_image(op)
        if made[2] != shape[2]: self.refuse(op, 'makes %d channels of %d' % (made[2], shape[2]))
        kernel = [op.options.number(4, 'i'), op.options.number(3, 'i')]
        kind = 'maxpool' if op.kind == 'MAX_POOL_2D' else 'avgpool'
        node = self.add(op, kind, [self.value(op, 0)], made, act=self.activation(op, 5))
        self.place_window(op, node, kernel, [1, 1])

    def mean(self, op):
        self.check_types(op, 1)
        shape, rank = self.image(op, 0, SIGNALS), len(self.tensor(op, 0).shape)
        if {self.axis(op, axis, rank) for axis in self.sizes(op, 1, 'axes', 0)} != set(range(1, rank - 1)):
            self.refuse(op, 'is known over height and width alone, or the length of a signal')
        self.add(op, 'gavgpool', [self.value(op, 0)], self.out(op).shape[1:] if len(self.out(op).shape) == 4 else (shape[2],))

    def pair(self, op):
        if len(op.inputs) != 2: self.refuse(op, 'has %d inputs, and must have two' % len(op.inputs))
        nodes = [self.value(op, 0), self.value(op, 1)]
        self.check_types(op, 2)
        shapes = [self.tensor(op, 0).shape, self.tensor(op, 1).shape]
        first = int(math.prod(shapes[0]) < math.prod(shapes[1]))
        if first: nodes, shapes = nodes[::-1], shapes[::-1]
        is_row = len(shapes[0]) in SIGNALS and shapes[1] and math.prod(shapes[1]) == shapes[1][-1] == shapes[0][-1]
        if shapes[0] != shapes[1] and not is_row:
            self.refuse(op, '%s beside %s is not known' % (by_x(shapes[0]), by_x(shapes[1])))
        if shapes[0] != shapes[1]: self.image(op, first, SIGNALS)
        for node, other in (nodes, nodes[::-1]):
            if node.elements == other.elements and len(node.shape) < len(other.shape): view_as_image(node, other.shape)
        self.add(op, 'add' if op.kind == 'ADD' else 'mul', nodes, nodes[0].shape, act=self.activation(op, 0))

    def elementwise(self, op):
        self.check_types(op, 1)
        kind = {'LOGISTIC': 'sigmoid', 'TANH': 'tanh', 'HARD_SWISH': 'hardswish', 'RELU': 'relu', 'RELU6': 'relu6'}[op.kind]
        self.add(op, kind, [self.value(op, 0)], self.value(op, 0).shape)

    def softmax(self, op):
        self.check_types(op, 1)
        node = self.value(op, 0)
        if op.options.number(0, 'f') != 1.0: self.refuse(op, 'is known with beta 1 alone')
        if len(node.shape) == 1 and len(self.tensor(op, 0).shape) in SIGNALS: self.image(op, 0, SIGNALS)
        if self.out(op).shape[-1] != node.shape[-1]: self.refuse(op, 'is known over the channels alone')
        self.add(op, 'softmax', [node], node.shape)

    def concatenation(self, op):
        if not op.inputs: self.refuse(op, 'it has no inputs')
        nodes = [self.value(op, k) for k in range(len(op.inputs))]
        self.check_types(op, len(nodes))
        if self.activation(op, 1) != 'none': self.refuse(op, 'with an activation is not known')
        rank = len(self.out(op).shape)
        axis = self.axis(op, op.options.number(0, 'i'), rank)
        if rank not in (2, *SIGNALS) or axis == 0: self.refuse(op, 'along axis %d of %d is not known' % (axis, rank))
        shapes = [self.image(op, k, (rank,)) if rank > 2 else [node.elements] for k, node in enumerate(nodes)]
        axis -= 1
        if rank == 3 and (axis or not self.is_column(op)): axis += 1
        made = list(shapes[0])
        made[axis] = sum(shape[axis] for shape in shapes)
        differs = any(shape[k] != made[k] for shape in shapes for k in range(len(made)) if k != axis)
        if differs or made != self.as_image(op, self.out(op)):
            self.refuse(op, 'joins %s to %s' % (' and '.join(map(by_x, shapes)), by_x(self.out(op).shape)))
        self.add(op, 'concat', nodes, made, axis=axis)

    def pad(self, op):
        self.check_types(op, 1)
        shape, made, rank = self.image(op, 0, SIGNALS), self.as_image(op, self.out(op)), len(self.tensor(op, 0).shape)
        pads = self.sizes(op, 1, 'paddings', 2 * rank)
        if any(pads[:2] + pads[-2:]) or min(pads) < 0:
            self.refuse(op, 'pads the batch or the channels, or by less than 0')
        top, bottom, left, right = pads[2:-2] if rank == 4 else [*pads[2:4], 0, 0] if self.is_column(op) else [0, 0, *pads[2:4]]
        if list(made) != [shape[0] + top + bottom, shape[1] + left + right, shape[2]]:
            self.refuse(op, 'makes %s' % by_x(made))
        node = self.add(op, 'pad', [self.value(op, 0)], made, pad=(top, left, bottom, right))
        if (node.scale, node.zero) != (node.inputs[0].scale, node.inputs[0].zero): self.refuse(op, 'changes the scale')

    def resize(self, op):
        self.check_types(op, 1)
        shape, made = self.image(op, 0), self.made_image(op)
        factor = [made[k] // shape[k] for k in (0, 1)]
        if made[2] != shape[2] or any(shape[k] * factor[k] != made[k] for k in (0, 1)):
            self.refuse(op, 'makes %s of %s: is known for whole factors alone' % (by_x(made), by_x(shape)))
        if op.options.number(0, 'B') and factor != [1, 1]: self.refuse(op, 'with align_corners is not known')
        node = self.add(op, 'upsample', [self.value(op, 0)], made, stride=tuple(factor))
        if (node.scale, node.zero) != (node.inputs[0].scale, node.inputs[0].zero): self.refuse(op, 'changes the scale')


SIGNALS = 3, 4      # axes of what may be an image or a signal

# What computes the sizes of a RESHAPE, whose output says them: nobody else may read it.
SHAPE_OPS = 'SHAPE', 'STRIDED_SLICE', 'PACK', 'CONCATENATION', 'GATHER'
READERS = {'ADD': Importer.pair, 'MUL': Importer.pair, 'AVERAGE_POOL_2D': Importer.pool, 'MAX_POOL_2D': Importer.pool,
           'CONCATENATION': Importer.concatenation, 'CONV_2D': Importer.conv, 'DEPTHWISE_CONV_2D': Importer.conv,
           'DEQUANTIZE': Importer.dequantize, 'FULLY_CONNECTED': Importer.fully_connected, 'MEAN': Importer.mean,
           'LOGISTIC': Importer.elementwise, 'TANH': Importer.elementwise, 'HARD_SWISH': Importer.elementwise,
           'RELU': Importer.elementwise, 'RELU6': Importer.elementwise, 'SOFTMAX': Importer.softmax,
           'RESHAPE': Importer.reshape, 'SQUEEZE': Importer.reshape, 'EXPAND_DIMS': Importer.reshape, 'PAD': Importer.pad,
           'QUANTIZE': Importer.quantize, 'RESIZE_NEAREST_NEIGHBOR': Importer.resize}


class Named:
    """What a sentence is about."""
    def __init__(self, op, name): self.op, self.name = op, name


def import_model(model):
    """The finished nodes of a model."""
    try: return finish(Importer(model).read())
    except Damaged as damage: raise Refused('is damaged: %s' % damage)


# -- ranges --

INTERPRETERS = 'ai_edge_litert.interpreter', 'tflite_runtime.interpreter', 'tensorflow.lite.python.interpreter'


def find_interpreter():
    """A module with TensorFlow Lite's interpreter."""
    for name, value in (('TF_CPP_MIN_LOG_LEVEL', '3'), ('TF_ENABLE_ONEDNN_OPTS', '0')): os.environ.setdefault(name, value)     # no chatter
    for name in INTERPRETERS:
        try: return importlib.import_module(name)
        except ImportError: pass
    raise Refused('--calibrate: there is no interpreter of TensorFlow Lite (pip install ai-edge-litert, or tensorflow)')


def measure_ranges(model, data, nodes, path):
    """Set low and high of every node from what TensorFlow Lite computes of samples; returns sentences."""
    if any(node.scale is not None for node in nodes): raise Refused('has scales of its own: --calibrate is for a model in floats')
    try: import calibration
    except ImportError as missing: raise Refused('--calibrate: %s (pip install numpy)' % missing)
    inputs = {model.tensors[index].name: index for index in model.inputs}
    samples, notes = calibration.read_samples(path, {name: model.tensors[index].shape[1:] for name, index in inputs.items()})
    module = find_interpreter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            interpreter = module.Interpreter(model_content=data, experimental_preserve_all_tensors=True,
                                             experimental_op_resolver_type=module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        interpreter.allocate_tensors()
        for k in range(len(next(iter(samples.values())))):
            for name, index in inputs.items(): interpreter.set_tensor(index, samples[name][k:k + 1])
            interpreter.invoke()
            for node in nodes:
                if node.source is not None: calibration.observe(node, interpreter.get_tensor(node.source))
    except Refused: raise
    except Exception as error: raise Refused('TensorFlow Lite refuses it: %s' % calibration.in_a_line(error))
    return notes + calibration.finish_ranges(nodes, path)


# -- plans for TFLM --
#
# TFLM places tensors as it meets them. Where the metadata of a model has OfflineMemoryAllocation, the tensors in it lie
# where that says: int32 numbers, version 1, number of the graph, count of its tensors, and for each its offset in the
# arena, or -1: placed by TFLM, or a constant. Offsets are multiples of ALIGNMENT. What kernels ask for as scratch is
# placed by TFLM around these.

ALIGNMENT = 16
MODEL_FIELDS = 8        # of the schema's table Model
SIZES = {'FLOAT32': 4, 'FLOAT16': 2, 'INT32': 4, 'UINT8': 1, 'INT64': 8, 'BOOL': 1, 'INT16': 2, 'INT8': 1, 'FLOAT64': 8}


def list_lifetimes(model):
    """[(tensor, first op, last op, bytes)] of what an arena holds; the inputs are there before the first op."""
    first, last = {index: 0 for index in model.inputs}, {}
    for k, op in enumerate(model.operators):
        for index in op.outputs: first.setdefault(index, k)
        for index in op.inputs: last[index] = k
    for index in model.outputs: last[index] = max(len(model.operators) - 1, 0)
    rows = []
    for index in sorted(first):
        tensor = model.tensors[index] if index >= 0 else None
        if tensor is None or tensor.raw or tensor.is_variable: continue
        if tensor.is_dynamic: raise Refused('tensor %s: its shape is dynamic' % tensor.name)
        if tensor.type not in SIZES: raise Refused('tensor %s: %s is not known' % (tensor.name, tensor.type))
        size = -(-tensor.elements * SIZES[tensor.type] // ALIGNMENT) * ALIGNMENT
        if size > MOST_BYTES: raise Refused('tensor %s: is more than 2 GiB' % tensor.name)
        rows.append((index, first[index], last.get(index, first[index]), size))
    return rows


def place_tensors(rows, program):
    """{tensor: offset} by tl_pack, and the bytes of the arena."""
    with tempfile.TemporaryDirectory() as folder:
        asked, made = os.path.join(folder, 'lifetimes.csv'), os.path.join(folder, 'offsets.csv')
        with open(asked, 'w') as file:
            file.write('id,lower,upper,size,alignment\n')
            for index, first, last, size in rows:
                file.write('%d,%d,%d,%d,%d\n' % (index, first, last + 1, size, ALIGNMENT))
        try: done = subprocess.run([program, asked, '--out', made], capture_output=True, text=True)
        except OSError as error: raise WrongFile(program, '%s (make build/tl_pack)' % error.strerror)
        if done.returncode: raise Refused('tl_pack: %s' % done.stderr.strip())
        with open(made) as file: offsets = {int(row['id']): int(row['offset']) for row in csv.DictReader(file)}
    return offsets, max([offsets[index] + size for index, _, _, size in rows] or [0])


def add_plan(model, data, offsets):
    """The bytes of a model with a plan. Offsets of a flatbuffer lead forwards, so a new root stands before the old file,
    with longer vectors of buffers and metadata, and all else stays where it is behind it."""
    root, places = model.root, {}
    if root.field_count() > MODEL_FIELDS:
        raise Refused('has a newer schema: its table Model has %d fields' % root.field_count())
    metadata = [table for table in root.tables(6) if table.text(0) != PLAN_NAME]
    out = Writer(IDENTIFIER)
    at, places = out.table({0: ('I', root.number(0, 'I'))}, [k for k in range(1, MODEL_FIELDS) if root.find(k) or k == 6])
    out.set_root(at)
    behind = [(places[k], root.follow(k)) for k in places if k not in (4, 6)]
    at, entries = out.references(len(model.buffers) + 1)
    out.refer(places[4], at)
    behind += zip(entries, [buffer.at for buffer in model.buffers])
    at, names = out.references(len(metadata) + 1)
    out.refer(places[6], at)
    behind += zip(names, [table.at for table in metadata])
    table, inner = out.table({1: ('I', len(model.buffers))}, (0,))
    out.refer(names[-1], table)
    out.refer(inner[0], out.text(PLAN_NAME))
    table, inner = out.table({}, (0,))
    out.refer(entries[-1], table)
    numbers = [1, 0, len(model.tensors)] + [offsets.get(index, -1) for index in range(len(model.tensors))]
    out.refer(inner[0], out.raw(struct.pack('<%di' % len(numbers), *numbers)))
    out.align(ALIGNMENT)
    for place, old in behind: out.refer(place, len(out.data) + old)
    if len(out.data) + len(data) > MOST_BYTES: raise Refused('is more than 2 GiB with a plan')
    return bytes(out.data) + data


def write_plan(path, model, data, program):
    rows = list_lifetimes(model)
    offsets, arena = place_tensors(rows, program)
    write_file(path, add_plan(model, data, offsets))
    print('%s: %d tensors in %d bytes of the arena' % (path, len(rows), arena))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model', metavar='MODEL.tflite')
    parser.add_argument('-o', metavar='NAME', dest='name', help='files are NAME.tlg and so on (MODEL)')
    parser.add_argument('--calibrate', metavar='DATA.npz', help='samples for each input of a float model, for the ranges')
    parser.add_argument('--tflm-plan', metavar='OUT.tflite', dest='plan', help='write the model with a plan for TFLM instead')
    parser.add_argument('--tl-pack', metavar='PROGRAM', dest='program', default=os.path.join(HERE, '..', 'build', 'tl_pack'))
    options = parser.parse_args(arguments)

    def work():
        data = read_model(options.model)
        model = load(data)
        if options.plan: return write_plan(options.plan, model, data, options.program)
        nodes = import_model(model)
        notes = measure_ranges(model, data, nodes, options.calibrate) if options.calibrate else []
        write_model(nodes, options.name or os.path.splitext(options.model)[0], 'import_tflite.py, costs in FLOP')
        tell('import_tflite', notes)
    return run('import_tflite', options.model, work)


if __name__ == '__main__':
    sys.exit(main())
