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


def run(nodes, arrays, compute=compute_float):
    """{name: output} of every node for {input: array}, H x W x C."""
    made = {}
    for node in nodes:
        if node.op == 'input': made[node.name] = np.asarray(arrays[node.name]).reshape(node.shape)
        else: made[node.name] = np.asarray(activate(node, compute(node, [made[m.name] for m in node.inputs]))).reshape(node.shape)
    return made
