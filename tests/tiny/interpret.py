"""Compute what NAME.tlg, NAME.safetensors and NAME.ranges say, in numpy: floats, and integers as TFLM's reference
kernels compute them. It reads the files and knows nothing of what wrote them."""
import json, struct

import numpy as np

DTYPES = {'F32': '<f4', 'I32': '<i4', 'I8': 'i1'}


class Node:
    pass


def read_words(words): return dict(word.split('=', 1) if '=' in word else (word, True) for word in words)
def ints(text, by='x'): return [int(x) for x in text.split(by)]


def hash_of(nodes):
    value = 14695981039346656037
    for node in nodes:
        for byte in ('%s %s %d\n' % (node.name, node.op, node.bytes)).encode():
            value = ((value ^ byte) * 1099511628211) & (2**64 - 1)
    return '%016x' % value


def read_safetensors(path):
    data = open(path, 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    end, tensors = 0, {}
    for name, entry in header.items():
        first, last = entry['data_offsets']
        assert first == end
        end = last
        tensors[name] = np.frombuffer(body[first:last], DTYPES[entry['dtype']]).reshape(entry['shape'])
    assert end == len(body)
    return tensors


def read(prefix):
    """The nodes of a model, each with what the three files say of it."""
    lines = [line for line in open(prefix + '.tlg', encoding='utf-8').read().splitlines() if not line.startswith('#')]
    assert lines[0] == 'tlg 2' and lines[-1] == 'end %d' % (len(lines) - 2)
    nodes = []
    for line in lines[1:-1]:
        words = line.split()
        node = Node()
        node.name, node.op, node.says = words[2], words[3], read_words(words[4:])
        assert int(words[1]) == len(nodes)
        node.inputs = [] if node.says['in'] == '-' else [nodes[int(k)] for k in node.says['in'].split(',')]
        node.bytes, node.keep = int(node.says['out']), 'keep' in node.says
        nodes.append(node)
    by_name = {node.name: node for node in nodes}
    ranges = open(prefix + '.ranges', encoding='utf-8').read().splitlines()
    assert ranges[:2] == ['ranges 1', 'model ' + hash_of(nodes)] and ranges[-1] == 'end %d' % (len(ranges) - 3)
    for line in ranges[2:-1]:
        kind, name, *words = line.split()
        node, says = by_name[name], read_words(words)
        if kind == 'node': node.geometry = says
        else:
            node.shape = tuple(ints(says['shape']))
            node.low, node.high = (float(says[k]) if k in says else None for k in ('low', 'high'))
            node.scale = np.float32(says['scale']) if 'scale' in says else None
            node.zero = int(says['zero']) if 'zero' in says else None
            assert 4 * np.prod(node.shape) == node.bytes
    tensors = read_safetensors(prefix + '.safetensors')
    for node in nodes:
        node.weights, node.bias = tensors.pop(node.name + '.weights', None), tensors.pop(node.name + '.bias', None)
        node.weight_scale = tensors.pop(node.name + '.scale', None)
        if 'stored' in node.says:
            assert [int(s.split(':')[0]) for s in node.says['stored'].split(',')] == [4 * node.weights.size, 4 * node.bias.size]
    assert not tensors
    return nodes


def windows(node, x, filler):
    """(H', W', kh, kw, C) of an image under the windows of a node."""
    g = node.geometry
    kernel, stride, pad = ints(g['kernel']), ints(g['stride']), ints(g['pad'], ',')
    dilation = ints(g.get('dilation', '1x1'))
    x = np.pad(x, ((pad[0], pad[2]), (pad[1], pad[3]), (0, 0)), constant_values=filler)
    made = [(x.shape[k] - dilation[k] * (kernel[k] - 1) - 1) // stride[k] + 1 for k in (0, 1)]
    rows = np.arange(made[0])[:, None] * stride[0] + np.arange(kernel[0]) * dilation[0]
    columns = np.arange(made[1])[:, None] * stride[1] + np.arange(kernel[1]) * dilation[1]
    return x[rows[:, None, :, None], columns[None, :, None, :]]


def counts(node, x):
    """How many elements of the input each window of a mean holds."""
    return windows(node, np.ones(x.shape[:2] + (1,)), 0).sum((2, 3))


def image(node, x):
    return x.reshape(node.inputs[0].shape) if len(node.inputs[0].shape) == 3 else x.reshape(1, 1, -1)


def activate(node, y):
    act = getattr(node, 'geometry', {}).get('act', 'none')
    return y if act == 'none' else np.maximum(y, 0) if act == 'relu' else np.clip(y, 0, 6)


def float_weights(node):
    """Weights and biases as floats, whatever they are stored as."""
    if node.weight_scale is None: return node.weights.astype(np.float64), node.bias.astype(np.float64)
    scale = node.weight_scale.astype(np.float64)
    along = scale if node.op == 'depthwise' else scale.reshape([-1] + [1] * (node.weights.ndim - 1))
    return node.weights * along, node.bias * (scale * np.float64(node.inputs[0].scale))


def compute_float(node, inputs):
    x = inputs[0].astype(np.float64)
    if node.op in ('conv2d', 'depthwise', 'linear'):
        w, b = float_weights(node)
        if node.op == 'linear': return w @ x.ravel() + b
        taken = windows(node, image(node, x), 0)
        if node.op == 'conv2d': return np.einsum('hwabc,nabc->hwn', taken, w) + b
        m = int(node.geometry['multiplier'])
        return np.einsum('hwabc,abcm->hwcm', taken, w.reshape(w.shape[:2] + (-1, m))).reshape(taken.shape[:2] + (-1,)) + b
    if node.op == 'maxpool': return windows(node, image(node, x), -np.inf).max((2, 3))
    if node.op == 'avgpool': return windows(node, image(node, x), 0).sum((2, 3)) / counts(node, image(node, x))
    if node.op == 'gavgpool': return image(node, x).mean((0, 1))
    if node.op == 'add': return x + inputs[1].reshape(np.shape(inputs[1]) if inputs[1].size < x.size else x.shape)
    if node.op == 'mul': return x * inputs[1].reshape(np.shape(inputs[1]) if inputs[1].size < x.size else x.shape)
    if node.op == 'concat' and len(node.shape) == 1: return np.concatenate([i.ravel() for i in inputs])
    if node.op == 'concat':
        return np.concatenate([i.reshape(n.shape) for i, n in zip(inputs, node.inputs)], int(node.geometry['axis']))
    if node.op == 'softmax':
        x = x.reshape(node.shape)
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    if node.op == 'upsample':
        f = ints(node.geometry['stride'])
        return x.reshape(node.inputs[0].shape).repeat(f[0], 0).repeat(f[1], 1)
    if node.op == 'pad':
        p = ints(node.geometry['pad'], ',')
        return np.pad(x.reshape(node.inputs[0].shape), ((p[0], p[2]), (p[1], p[3]), (0, 0)))
    return {'sigmoid': lambda: 1 / (1 + np.exp(-x)), 'tanh': lambda: np.tanh(x), 'relu': lambda: np.maximum(x, 0),
            'relu6': lambda: np.clip(x, 0, 6), 'hardswish': lambda: x * np.clip(x / 6 + 0.5, 0, 1),
            'requantize': lambda: x}[node.op]()


# -- integers, as the reference kernels of TensorFlow Lite compute them --

def factor_of(real):
    """A factor as (multiplier, exponent): multiplier 2^(exponent - 31)."""
    mantissa, exponent = np.frexp(np.asarray(real, np.float64))
    multiplier = np.rint(mantissa * 2.0**31).astype(np.int64)
    exponent = exponent + (multiplier == 2**31)
    return np.where(multiplier == 2**31, 2**30, multiplier), exponent.astype(np.int64)


def shift_right(value, shift):
    """value / 2^shift, halves away from zero."""
    mask = (np.int64(1) << shift) - 1
    rest = value & mask
    return (value >> shift) + (rest > (mask >> 1) + (value < 0))


def scale_by(value, factor):
    """Two roundings, as gemmlowp: the high half of twice the product, then the shift."""
    multiplier, exponent = factor
    value = np.asarray(value, np.int64) << np.maximum(exponent, 0)
    product = value * multiplier
    high = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    return shift_right(np.where(high >= 0, high >> 31, -(-high >> 31)), np.maximum(-exponent, 0))


def clamp(node, q):
    """Add the zero point; bounds are those of int8 and of the activation."""
    act, low, high = getattr(node, 'geometry', {}).get('act', 'none'), -128, 127
    if act != 'none': low = max(low, node.zero)
    if act == 'relu6': high = min(high, int(node.zero + np.rint(np.float32(6) / node.scale)))
    return np.clip(q + node.zero, low, high).astype(np.int8)


def divide(sums, count):
    """A mean: halves away from zero."""
    return np.where(sums >= 0, (sums + count // 2) // count, -((-sums + count // 2) // count))


def compute_int(node, inputs):
    """The int8 of a node; softmax, sigmoid, tanh and hardswish are rounded from floats."""
    source, x = node.inputs[0], inputs[0].astype(np.int64)
    if source.scale is not None: real = np.float64(source.scale) / np.float64(node.scale)
    if node.op in ('conv2d', 'depthwise', 'linear'):
        factor = factor_of(node.weight_scale.astype(np.float64) * np.float64(source.scale) / np.float64(node.scale))
        w, x = node.weights.astype(np.int64), x - source.zero
        if node.op == 'linear': sums = w @ x.ravel()
        elif node.op == 'conv2d': sums = np.einsum('hwabc,nabc->hwn', windows(node, image(node, x), 0), w)
        else:
            m, taken = int(node.geometry['multiplier']), windows(node, image(node, x), 0)
            sums = np.einsum('hwabc,abcm->hwcm', taken, w.reshape(w.shape[:2] + (-1, m))).reshape(taken.shape[:2] + (-1,))
        return clamp(node, scale_by(sums + node.bias, factor))
    if node.op == 'maxpool': return clamp(node, windows(node, image(node, x), -128).max((2, 3)) - node.zero)
    if node.op == 'avgpool':
        taken = windows(node, image(node, x - source.zero), 0).sum((2, 3)) + source.zero * counts(node, image(node, x)).astype(np.int64)
        return clamp(node, divide(taken, counts(node, image(node, x)).astype(np.int64)) - node.zero)
    if node.op == 'gavgpool':
        rows = image(node, x)
        return clamp(node, mean_of(rows.sum((0, 1)), rows.shape[0] * rows.shape[1], source, node))
    if node.op == 'add':
        scales = [np.float64(n.scale) for n in node.inputs]
        most = 2 * max(scales)
        parts = [scale_by((i.astype(np.int64) - n.zero) << 20, factor_of(s / most)) for i, n, s in zip(inputs, node.inputs, scales)]
        return clamp(node, scale_by(parts[0] + parts[1].reshape(-1) if parts[1].size < parts[0].size else parts[0] + parts[1].reshape(parts[0].shape),
                                    factor_of(most / (2.0**20 * np.float64(node.scale)))))
    if node.op == 'mul':
        other = node.inputs[1]
        y = inputs[1].astype(np.int64) - other.zero
        y = y.reshape(-1) if y.size < x.size else y.reshape(x.shape)
        return clamp(node, scale_by((x - source.zero) * y, factor_of(np.float64(source.scale) * np.float64(other.scale) / np.float64(node.scale))))
    if node.op in ('relu', 'relu6', 'requantize'):
        q = scale_by(x - source.zero, factor_of(real))
        if node.op == 'requantize': return clamp(node, q)
        most = 127 if node.op == 'relu' else min(127, int(node.zero + np.rint(np.float32(6) / node.scale)))
        return np.clip(q + node.zero, max(-128, node.zero), most).astype(np.int8)
    if node.op == 'concat': return compute_float(node, inputs).astype(np.int8)
    if node.op == 'upsample': return compute_float(node, inputs).astype(np.int8)
    if node.op == 'pad': return (compute_float(node, [x - source.zero]) + node.zero).astype(np.int8)
    y = compute_float(node, [(x - source.zero) * np.float64(source.scale)])
    return clamp(node, np.rint(y / np.float64(node.scale)).astype(np.int64))


def mean_of(sums, count, source, node):
    """MEAN of TFLM: the sum of (x - zero) by one factor, the count within it."""
    multiplier, exponent = factor_of(np.float64(source.scale) / np.float64(node.scale))
    shift = min(int(count).bit_length() - 1, 32, 31 + int(exponent))
    scaled = ((int(multiplier) << shift) // int(count))
    return scale_by(sums - source.zero * count, (np.int64(scaled), exponent - shift))


def run(nodes, arrays, compute=compute_float):
    """{name: output} of every node for {input: array}, H x W x C."""
    made = {}
    for node in nodes:
        if node.op == 'input': made[node.name] = np.asarray(arrays[node.name]).reshape(node.shape)
        else:
            y = compute(node, [made[m.name] for m in node.inputs])
            made[node.name] = np.asarray(y if compute is compute_int else activate(node, y)).reshape(node.shape)
    return made
