"""The three files of a trained network for a microcontroller: NAME.tlg, NAME.safetensors, NAME.ranges.

import_onnx.py and import_tflite.py make a list of nodes of what they read; here is what is the same for both: folding
of padding and activations, names, rows, costs, and the forms of the files. Plain Python 3, no package.

Tensors are channels last: H x W x C, or C; a batch is one sample. Weights of conv2d are (N, kh, kw, C), of depthwise
(kh, kw, C multiplier), of linear (N, K). The header of each form stands with the function that writes it.
"""
import json, math, os, struct, sys

BYTES_OF = {'F32': 4, 'I32': 4, 'I8': 1}
MOST_BYTES = 2**31 - 1      # of a file, and of a tensor
MOST_PIECE = 1 << 20        # bytes of weights that are looked at together
MOST_NAME = 255             # bytes, of the .tlg
SIDES = 'top', 'left', 'bottom', 'right'

WEIGHTED = 'conv2d', 'depthwise', 'linear'
WINDOWED = 'conv2d', 'depthwise', 'avgpool', 'maxpool'
ELEMENTWISE = 'add', 'mul', 'sigmoid', 'tanh', 'hardswish', 'relu', 'relu6', 'requantize'
TAKES_ACTIVATION = 'conv2d', 'depthwise', 'linear', 'add', 'mul', 'avgpool', 'maxpool'
KEEPS_SIGN = 'maxpool', 'avgpool', 'gavgpool', 'upsample', 'pad', 'concat'     # of inputs that are not negative
OPS = WINDOWED + ELEMENTWISE + ('linear', 'gavgpool', 'concat', 'softmax', 'upsample', 'pad')


class Refused(Exception):
    """One sentence that names the op and the node."""


class WrongFile(Refused):
    """What is wrong is not the model: the sentence begins with another file."""

    def __init__(self, path, why): super().__init__('%s: %s' % (path, why))


class Data:
    """Numbers of a constant: dtype and shape as in .safetensors, raw is little endian and row-major."""

    def __init__(self, dtype, shape, raw):
        self.dtype, self.shape, self.raw = dtype, tuple(shape), bytes(raw)
        assert len(self.raw) == BYTES_OF[dtype] * math.prod(self.shape)

    def is_finite(self):
        """Whether all floats are; in pieces, for there may be many."""
        pieces = (self.raw[at:at + MOST_PIECE] for at in range(0, len(self.raw), MOST_PIECE))
        return self.dtype != 'F32' or all(math.isfinite(x) for piece in pieces for x, in struct.iter_unpack('<f', piece))

    def numbers(self):
        return struct.unpack('<%d%s' % (math.prod(self.shape), {'F32': 'f', 'I32': 'i', 'I8': 'b'}[self.dtype]), self.raw)


def floats(shape, numbers): return Data('F32', shape, struct.pack('<%df' % len(numbers), *numbers))
def integers(shape, numbers): return Data('I32', shape, struct.pack('<%di' % len(numbers), *numbers))


class Node:
    """An op with its one output. inputs: nodes; shape: (H, W, C) or (C,); source: the tensor of the model."""

    def __init__(self, op, name, inputs, shape, source=None, **geometry):
        self.op, self.name, self.inputs, self.shape, self.source = op, name, list(inputs), tuple(shape), source
        self.kernel = self.stride = self.dilation = (1, 1)
        self.pad = (0, 0, 0, 0)             # by SIDES
        self.act, self.axis, self.multiplier = 'none', None, 1
        self.weights = self.bias = None     # Data; with scales the weights are I8 and the bias I32
        self.scales = None                  # of the weights: one, or one a channel
        self.low = self.high = None         # measured
        self.scale = self.zero = None       # of the output, where the model fixes it
        self.keep = False
        self.is_affine = False              # factor x + term, for each channel: folded where it can be
        for key, value in geometry.items():
            assert hasattr(self, key)
            setattr(self, key, value)
        if math.prod(self.shape) * 4 > MOST_BYTES or min(self.shape) < 1:
            refuse(self, 'makes %s, which is more than 2 GiB or nothing' % by_x(self.shape))

    @property
    def elements(self): return math.prod(self.shape)


def by_x(numbers): return 'x'.join(map(str, numbers)) or 'one number'


def as_line(text): return ''.join(c if c.isprintable() else '?' for c in text)


def refuse(node, why):
    raise Refused('%s %s: %s' % (node.op, node.name, why))


def view_as_image(node, shape):
    """Read the output of a node as (H, W, C): a reshape between nodes. A vector becomes the image that is read."""
    shape = tuple(shape)
    if math.prod(shape) != node.elements: refuse(node, 'has %s, and %s are read' % (by_x(node.shape), by_x(shape)))
    if len(node.shape) == 1: node.shape = shape
    if node.shape != shape:
        refuse(node, 'is an image of %s that is read as one of %s' % (by_x(node.shape), by_x(shape)))


def pad_same(size, kernel, stride, dilation, is_upper=True):
    """Padding before and behind an axis so that there is an output for each stride, and outputs."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + dilation * (kernel - 1) + 1 - size)
    before = total // 2 if is_upper else total - total // 2
    return before, total - before, outputs


def count_windows(node, name, size, kernel, stride, before, behind, dilation):
    """Outputs of a window along an axis; what no .tlg and no kernel can say is refused."""
    reach = dilation * (kernel - 1)
    if min(kernel, stride, dilation) < 1 or max(kernel, stride, dilation) > 65535:
        refuse(node, 'kernel %d, stride %d, dilation %d: must be 1 to 65535' % (kernel, stride, dilation))
    if min(before, behind) < 0 or max(before, behind) > reach:
        refuse(node, 'padding of %d and %d does not fit a window of %d along the %s' % (before, behind, reach + 1, name))
    if size + before + behind < reach + 1: refuse(node, 'its window is larger than its input along the %s' % name)
    return (size + before + behind - reach - 1) // stride + 1


def set_window(node, kernel, stride, pad, dilation=(1, 1)):
    """Set the window of a node, whose input and output are images, and check it against the output's shape."""
    node.kernel, node.stride, node.pad, node.dilation = tuple(kernel), tuple(stride), tuple(pad), tuple(dilation)
    size = [count_windows(node, ('height', 'width')[k], node.inputs[0].shape[k], kernel[k], stride[k], pad[k], pad[k + 2],
                          dilation[k]) for k in (0, 1)]
    if tuple(size) != node.shape[:2]:
        refuse(node, 'makes %s, and its windows are %s' % (by_x(node.shape[:2]), by_x(size)))


def check_weights(node):
    """Shapes of weights, biases and scales against those of the tensors, and their numbers."""
    channels = node.inputs[0].shape[-1]
    shape = {'conv2d': (node.shape[-1],) + node.kernel + (channels,), 'depthwise': node.kernel + (node.shape[-1],),
             'linear': (node.shape[-1], node.inputs[0].elements)}[node.op]
    if node.op == 'depthwise' and node.shape[-1] != channels * node.multiplier:
        refuse(node, 'makes %d channels of %d with multiplier %d' % (node.shape[-1], channels, node.multiplier))
    if node.weights.shape != shape:
        refuse(node, 'its weights are %s, and must be %s' % (by_x(node.weights.shape), by_x(shape)))
    if node.bias.shape != shape[-1:] and node.bias.shape != (node.shape[-1],):
        refuse(node, 'it has %s biases for %d channels' % (by_x(node.bias.shape), node.shape[-1]))
    if (node.weights.dtype, node.bias.dtype) != (('I8', 'I32') if node.scales else ('F32', 'F32')):
        refuse(node, 'weights of %s beside biases of %s' % (node.weights.dtype, node.bias.dtype))
    if node.scales and len(node.scales) not in (1, node.shape[-1]):
        refuse(node, 'it has %d scales for %d channels' % (len(node.scales), node.shape[-1]))
    for scale in node.scales or (): check_scale(node, scale)
    for data in (node.weights, node.bias):
        if not data.is_finite(): refuse(node, 'a weight is no finite number')


def check_scale(node, scale, zero=0):
    if not 2.0**-126 <= scale < math.inf: refuse(node, 'a scale of %r: must be a normal float above 0' % scale)
    if not -128 <= zero <= 127: refuse(node, 'a zero point of %d: must be -128 to 127' % zero)


# -- folding --

def count_readers(nodes):
    readers = {id(node): 0 for node in nodes}
    for node in nodes:
        for maker in node.inputs: readers[id(maker)] += 1
    return readers


def same_scale(a, b): return (a.scale, a.zero) == (b.scale, b.zero)


def take_output(maker, node):
    """What a folded node made is made by what is before it."""
    for what in ('source', 'scale', 'zero', 'low', 'high', 'keep'): setattr(maker, what, getattr(node, what))


def fold_activation(node, maker):
    """Whether relu or relu6 is done by what is before it."""
    if maker.op not in TAKES_ACTIVATION or maker.act != 'none' or maker.keep: return False
    if maker.scale is not None and not same_scale(maker, node): return False
    maker.act = node.op
    take_output(maker, node)
    return True


def is_positive(node):
    return node.act != 'none' or node.op in ('relu', 'relu6', 'sigmoid', 'softmax') or (
        node.op in KEEPS_SIGN and all(map(is_positive, node.inputs)))


def fold_pad(node, pad):
    """Whether a window reads what is before a pad. Zeros are those of its own padding: of a convolution, and of the
    largest of numbers that are not negative. A mean leaves its own padding out."""
    whole = [a + b for a, b in zip(node.pad, pad.pad)]
    reach = [d * (k - 1) for d, k in zip(node.dilation, node.kernel)] * 2
    if node.op not in ('conv2d', 'depthwise') and not (node.op == 'maxpool' and is_positive(pad.inputs[0])):
        return False
    if not same_scale(pad, pad.inputs[0]) or any(a > b for a, b in zip(whole, reach)): return False
    node.pad, node.inputs[0] = tuple(whole), pad.inputs[0]
    return True


def fold(nodes):
    """Fold activations into what is before them and pads into what is behind, and drop what nobody reads."""
    readers, gone = count_readers(nodes), {}
    for node in nodes:
        node.inputs = [gone.get(id(maker), maker) for maker in node.inputs]
        maker = node.inputs[0] if node.inputs else None
        is_folded = node.op in ('relu', 'relu6') and readers[id(maker)] == 1 and fold_activation(node, maker)
        if is_folded or (node.op == 'pad' and not any(node.pad) and not node.keep and same_scale(node, maker)):
            gone[id(node)] = maker
            readers[id(maker)] += readers[id(node)] - 1
    nodes = [node for node in nodes if id(node) not in gone]
    for node in nodes:
        while node.op in WINDOWED and node.inputs[0].op == 'pad' and fold_pad(node, node.inputs[0]): pass
    used = set()
    for node in reversed(nodes):
        if node.keep or id(node) in used: used.update(map(id, node.inputs))
        elif node.op == 'input': used.add(id(node))
        else: continue
        used.add(id(node))
    return [node for node in nodes if id(node) in used]


# -- names, costs, rows --

def make_names(nodes):
    """Make names of the model legal: no space, control character, # and = as the .tlg asks for, no quote and no
    backslash as .safetensors does, at most MOST_NAME bytes; a second one of the same name gets _2."""
    taken = set()
    for node in nodes:
        name = ''.join(c if c.isprintable() and c not in ' #="\\' and not c.isspace() else '_' for c in node.name) or 'n'
        first = name = name.encode('utf-8', 'replace')[:MOST_NAME - 8].decode('utf-8', 'ignore')
        count = 1
        while name in taken:
            count += 1
            name = '%s_%d' % (first, count)
        taken.add(name)
        node.name = name


def find_flops(node):
    """2 for a multiplication with its addition, 1 for a bias, 1 an element of what an element is made of."""
    channels = node.inputs[0].shape[-1] if node.inputs else 0
    window = math.prod(node.kernel)
    terms = {'input': 0, 'conv2d': 2 * window * channels + 1, 'depthwise': 2 * window + 1, 'avgpool': window,
             'maxpool': window}.get(node.op, 1)
    if node.op == 'linear': terms = 2 * node.inputs[0].elements + 1
    if node.op == 'gavgpool': return node.inputs[0].elements
    return terms * node.elements


def find_relations(node):
    """Which rows of each input a row of the output reads, as rin= says; None: the node is called as a whole."""
    images = [maker.shape for maker in node.inputs]
    if len(node.shape) != 3 or node.shape[0] < 2: return None
    if node.op == 'input': return []
    if node.op in WINDOWED or node.op == 'pad':
        if len(images[0]) != 3: return None
        if node.op == 'pad':
            if node.pad[0] or node.pad[2]: return None
            return ['1:1']
        window = node.kernel[0], node.stride[0], node.pad[0]
        if window == (1, 1, 0): return ['1:1']
        return ['%d/%d/%d' % window + ('/%d' % node.dilation[0] if node.dilation[0] > 1 else '')]
    if node.op == 'upsample': return ['up%d' % node.stride[0]]
    if node.op in ELEMENTWISE + ('softmax', 'concat'):
        rows = [len(shape) == 3 and shape[0] == node.shape[0] for shape in images]
        if not rows[0] or (node.op == 'concat' and not all(rows)): return None
        return ['1:1' if by_rows else 'whole' for by_rows in rows]
    return None


def may_write_over_input(node):
    return node.op in ('add', 'mul', 'relu', 'relu6', 'sigmoid', 'tanh', 'hardswish') and \
        node.inputs[0].op != 'input' and node.inputs[0].elements == node.elements


# -- the files --

def write_graph(nodes, title):
    """The text of NAME.tlg, tlg 2 as tl_read_graph has it. Bytes are those of f32, costs FLOP."""
    ids = {id(node): k for k, node in enumerate(nodes)}
    lines = ['tlg 2', '# %s' % title]
    for node in nodes:
        inputs = ','.join(str(ids[id(maker)]) for maker in node.inputs) or '-'
        line = 'node %d %s %s fwd=%d bwd=0 out=%d needs=none in=%s' % (
            ids[id(node)], node.name, node.op, find_flops(node), 4 * node.elements, inputs)
        line += ' dies' if node.op == 'input' else ' grad=no'
        if may_write_over_input(node): line += ' inplace=0'
        relations = find_relations(node)
        if relations is not None:
            line += ' rows=%d@1' % node.shape[0] + (' rin=' + ','.join(relations) if relations else '')
        if node.op in WEIGHTED:
            line += ' stored=%d:f32,%d:f32' % (4 * math.prod(node.weights.shape), 4 * math.prod(node.bias.shape))
        lines.append(line + (' keep' if node.keep else ''))
    return '\n'.join(lines + ['end %d' % len(nodes)]) + '\n'


def hash_graph(nodes):
    """FNV-1a of 64 bits over "NAME OP OUT\\n" of each node, OUT = bytes of the output: the model of a .ranges."""
    value = 14695981039346656037
    for node in nodes:
        for byte in ('%s %s %d\n' % (node.name, node.op, 4 * node.elements)).encode():
            value = (value ^ byte) * 1099511628211 % 2**64
    return '%016x' % value


def number(value): return '%.9g' % value


def write_ranges(nodes):
    """The text of NAME.ranges: shapes, ranges, and scales where the model fixes them; geometry of windows."""
    lines = []
    for node in nodes:
        line = 'tensor %s shape=%s' % (node.name, by_x(node.shape))
        if node.low is not None: line += ' low=%s high=%s' % (number(node.low), number(node.high))
        if node.scale is not None: line += ' scale=%s zero=%d' % (number(node.scale), node.zero)
        lines.append(line)
    for node in nodes:
        words = []
        if node.op in WINDOWED: words += ['kernel=' + by_x(node.kernel)]
        if node.op in WINDOWED or node.op == 'upsample': words += ['stride=' + by_x(node.stride)]
        if node.op in WINDOWED or node.op == 'pad': words += ['pad=' + ','.join(map(str, node.pad))]
        if node.op in ('conv2d', 'depthwise'): words += ['dilation=' + by_x(node.dilation)]
        if node.op in TAKES_ACTIVATION: words += ['act=' + node.act]
        if node.axis is not None: words += ['axis=%d' % node.axis]
        if node.op == 'depthwise': words += ['multiplier=%d' % node.multiplier]
        if words: lines.append('node %s %s' % (node.name, ' '.join(words)))
    return '\n'.join(['ranges 1', 'model ' + hash_graph(nodes)] + lines + ['end %d' % len(lines)]) + '\n'


def write_safetensors(tensors):
    """The bytes of NAME.safetensors for {name: Data}: length of the header, JSON, the data without holes."""
    header, parts, offset = {}, [], 0
    for name, data in tensors.items():
        header[name] = {'dtype': data.dtype, 'shape': list(data.shape), 'data_offsets': [offset, offset + len(data.raw)]}
        parts.append(data.raw)
        offset += len(data.raw)
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    return struct.pack('<Q', len(text)) + text + b''.join(parts)


def list_weights(nodes):
    tensors = {}
    for node in nodes:
        if node.op not in WEIGHTED: continue
        tensors[node.name + '.weights'] = node.weights
        tensors[node.name + '.bias'] = node.bias
        if node.scales: tensors[node.name + '.scale'] = floats((len(node.scales),), node.scales)
    return tensors


def check_nodes(nodes):
    if not any(node.op == 'input' for node in nodes): raise Refused('the model has no input that an output depends on')
    for node in nodes:
        if node.op == 'input' and node.keep: refuse(node, 'is an output, too')
        if node.op not in OPS + ('input',): refuse(node, 'this op is not known')
        if node.op in WEIGHTED: check_weights(node)


def finish(nodes):
    """Fold, name and check the nodes of a model: what all that is written goes by."""
    nodes = fold(nodes)
    make_names(nodes)
    check_nodes(nodes)
    return nodes


def write_file(path, data):
    """Replace a file when the new one is whole."""
    try:
        with open(path + '.new', 'wb') as file: file.write(data)
        os.replace(path + '.new', path)
    except OSError as error: raise WrongFile(path, 'cannot be written: %s' % error.strerror)


def write_model(nodes, prefix, title):
    """Write the three files of finished nodes, all of them or none, and say so."""
    files = {'.tlg': write_graph(nodes, title).encode(), '.safetensors': write_safetensors(list_weights(nodes)),
             '.ranges': write_ranges(nodes).encode()}
    if len(files['.safetensors']) > MOST_BYTES: raise Refused('the weights are more than 2 GiB')
    for suffix, data in files.items(): write_file(prefix + suffix, data)
    print(as_line('%s: %s' % (', '.join(prefix + suffix for suffix in files), describe(nodes))))


def describe(nodes):
    """What the files hold: nodes, constants, and whether 8 bits can be had of them."""
    constants = list_weights(nodes).values()
    unknown = [node.name for node in nodes if node.low is None and node.scale is None]
    ranges = 'a range or a scale for every tensor'
    if unknown: ranges = 'no range for %s (--calibrate measures them), so f32 alone' % (
        'any tensor' if len(unknown) == len(nodes) else '%d of %d tensors, as %s' % (len(unknown), len(nodes), unknown[0]))
    return '%d nodes, %d constants of %d bytes, %s' % (len(nodes), len(constants), sum(len(data.raw) for data in constants), ranges)


# -- reading the files again --

def fail_line(path, number, why): raise WrongFile(path, 'line %d: %s' % (number, why))


def read_lines(path):
    """The lines of a text with their numbers and words, without comments and empty ones."""
    with open(path, 'rb') as file: text = file.read(MOST_BYTES)
    try: lines = text.decode('utf-8-sig').split('\n')
    except UnicodeDecodeError: raise WrongFile(path, 'is no UTF-8')
    words = [(k + 1, line.split('#')[0].split()) for k, line in enumerate(lines)]
    return [(number, line) for number, line in words if line]


def read_keys(path, number, words, known):
    """{key: value} of words key=value, and {key: True} of words alone."""
    keys = {}
    for word in words:
        key, equals, value = word.partition('=')
        if key in keys or (known and key not in known):
            fail_line(path, number, '%s: %s' % (key, 'twice' if key in keys else 'this key is not known'))
        keys[key] = value if equals else True
    return keys


def read_integers(path, number, text, by, count=None, least=0, most=2**31 - 1):
    numbers = [int(word) if word.isascii() and word.isdigit() and len(word) < 11 else -1 for word in str(text).split(by)]
    if any(not least <= x <= most for x in numbers) or (count and len(numbers) not in count):
        fail_line(path, number, '%s: must be numbers from %d to %d' % (text, least, most))
    return tuple(numbers)


def read_graph(path):
    """The nodes of a .tlg that an importer wrote: names, ops, inputs, results, and bytes of outputs as elements."""
    lines, nodes = read_lines(path), []
    if not lines or lines[0][1] != ['tlg', '2']: raise WrongFile(path, 'does not begin with tlg 2')
    for number, words in lines[1:-1]:
        if words[0] != 'node' or len(words) < 5 or words[1] != str(len(nodes)):
            fail_line(path, number, 'must be node %d' % len(nodes))
        keys = read_keys(path, number, words[4:], None)
        made = read_integers(path, number, keys.get('out'), ',', (1,), 4)[0]
        inputs = () if keys.get('in') == '-' else read_integers(path, number, keys.get('in'), ',', None, 0, len(nodes) - 1)
        node = Node(words[3], words[2], [nodes[k] for k in inputs], (made // 4,), keep='keep' in keys)
        if words[3] not in OPS + ('input',): fail_line(path, number, '%s: this op is not known' % words[3])
        if (words[3] == 'input') != (not inputs): fail_line(path, number, 'an input reads nothing, all else something')
        nodes.append(node)
    if not nodes or lines[-1][1] != ['end', str(len(nodes))]:
        raise WrongFile(path, 'its last line is not end %d' % len(nodes))
    if len({node.name for node in nodes}) < len(nodes): raise WrongFile(path, 'a name is there twice')
    return nodes


def read_real(path, number, text):
    try: value = struct.unpack('<f', struct.pack('<f', float(text)))[0]
    except (ValueError, OverflowError, TypeError): value = math.nan
    if not math.isfinite(value): fail_line(path, number, '%s: must be a finite number' % text)
    return value


def read_tensor_line(path, number, node, keys):
    shape = read_integers(path, number, keys.get('shape'), 'x', (1, 3), 1)
    if math.prod(shape) != node.elements:
        fail_line(path, number, '%s: the graph has %d elements' % (by_x(shape), node.elements))
    if ('low' in keys) != ('high' in keys) or ('scale' in keys) != ('zero' in keys):
        fail_line(path, number, 'low, high, scale, zero: one is missing')
    node.shape = shape
    if 'low' in keys:
        node.low, node.high = read_real(path, number, keys['low']), read_real(path, number, keys['high'])
        if node.low > node.high: fail_line(path, number, 'low is above high')
    if 'scale' in keys:
        negative = str(keys['zero']).startswith('-')
        zero = read_integers(path, number, str(keys['zero'])[negative:], ',', (1,))[0]
        node.scale = read_real(path, number, keys['scale'])
        node.zero = -zero if negative else zero
        check_scale(node, node.scale, node.zero)


def read_node_line(path, number, node, keys):
    for key, value in keys.items():
        if key in ('kernel', 'stride', 'dilation'):
            setattr(node, key, read_integers(path, number, value, 'x', (2,), 1, 65535))
        elif key == 'pad': node.pad = read_integers(path, number, value, ',', (4,))
        elif key in ('axis', 'multiplier'): setattr(node, key, read_integers(path, number, value, ',', (1,))[0])
        elif value not in ('none', 'relu', 'relu6'):
            fail_line(path, number, 'act=%s: must be none, relu or relu6' % value)
        else: node.act = value


def read_ranges(path, nodes):
    """Set what a .ranges says of the nodes of its model."""
    lines, by_name, seen = read_lines(path), {node.name: node for node in nodes}, set()
    if len(lines) < 3 or lines[0][1] != ['ranges', '1']: raise WrongFile(path, 'does not begin with ranges 1')
    if lines[1][1] != ['model', hash_graph(nodes)]:
        raise WrongFile(path, 'is of another model, that of the .tlg is %s' % hash_graph(nodes))
    if lines[-1][1] != ['end', str(len(lines) - 3)]:
        raise WrongFile(path, 'its last line is not end %d' % (len(lines) - 3))
    readers = {'tensor': (read_tensor_line, ('shape', 'low', 'high', 'scale', 'zero')),
               'node': (read_node_line, ('kernel', 'stride', 'pad', 'dilation', 'act', 'axis', 'multiplier'))}
    for number, words in lines[2:-1]:
        if words[0] not in readers or len(words) < 2 or words[1] not in by_name:
            fail_line(path, number, 'must be tensor or node, and a name of the graph')
        if tuple(words[:2]) in seen: fail_line(path, number, '%s: a second line' % words[1])
        seen.add(tuple(words[:2]))
        reader, known = readers[words[0]]
        reader(path, number, by_name[words[1]], read_keys(path, number, words[2:], known))
    for node in nodes:
        if ('tensor', node.name) not in seen: raise WrongFile(path, 'tensor %s is missing' % node.name)


def read_safetensors(path):
    """{name: Data} of a .safetensors."""
    data = read_model(path)
    size = struct.unpack('<Q', data[:8])[0] if len(data) >= 8 else len(data)
    if size > len(data) - 8: raise WrongFile(path, 'its header is longer than the file')
    try: header = json.loads(data[8:8 + size])
    except (ValueError, RecursionError): raise WrongFile(path, 'its header is no JSON')
    tensors = {}
    for name, entry in header.items() if isinstance(header, dict) else ():
        if name == '__metadata__': continue
        entry = entry if isinstance(entry, dict) else {}
        dtype, shape, offsets = (entry.get(key) for key in ('dtype', 'shape', 'data_offsets'))
        numbers = [x for part in (shape, offsets) for x in (part if isinstance(part, list) else [None])]
        if dtype not in BYTES_OF or len(offsets or ()) != 2 or any(type(x) is not int or x < 0 for x in numbers):
            raise WrongFile(path, 'tensor %s: its type, shape or offsets are not known' % name)
        raw = data[8 + size + offsets[0]:8 + size + offsets[1]]
        if len(raw) != BYTES_OF[dtype] * math.prod(shape):
            raise WrongFile(path, 'tensor %s: has %d bytes for %s of %s' % (name, len(raw), by_x(shape), dtype))
        tensors[name] = Data(dtype, shape, raw)
    return tensors


def read_files(prefix):
    """The nodes that NAME.tlg, NAME.ranges and NAME.safetensors say, checked as what is written is."""
    nodes = read_graph(prefix + '.tlg')
    read_ranges(prefix + '.ranges', nodes)
    tensors = read_safetensors(prefix + '.safetensors')
    for node in nodes:
        if node.op not in WEIGHTED: continue
        node.weights, node.bias = tensors.get(node.name + '.weights'), tensors.get(node.name + '.bias')
        if not node.weights or not node.bias: refuse(node, 'weights or biases are missing')
        if len(node.weights.shape) != (2 if node.op == 'linear' else 4 if node.op == 'conv2d' else 3):
            refuse(node, 'its weights are %s' % by_x(node.weights.shape))
        if node.name + '.scale' in tensors: node.scales = list(tensors[node.name + '.scale'].numbers())
    check_nodes(nodes)
    return nodes


def read_model(path):
    """The bytes of a model of at most 2 GiB."""
    if os.path.getsize(path) > MOST_BYTES: raise WrongFile(path, 'is larger than 2 GiB')
    with open(path, 'rb') as file: return file.read(MOST_BYTES + 1)


def tell(program, notes):
    """Sentences about what is unlikely, and no reason to refuse."""
    for note in notes: print(as_line('%s: %s' % (program, note)), file=sys.stderr)


def run(program, path, work):
    """Exit with 0, or with 1 and one sentence: program: the file that is wrong: what is wrong."""
    try:
        work()
    except (Refused, OSError) as error:
        if isinstance(error, OSError): why = '%s: %s' % (error.filename or path, error.strerror or error)
        else: why = str(error) if isinstance(error, WrongFile) else '%s: %s' % (path, error)
        print(as_line('%s: %s' % (program, why)), file=sys.stderr)
        return 1
    return 0
