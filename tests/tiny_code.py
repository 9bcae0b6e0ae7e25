#!/usr/bin/env python3
"""From MODEL.tlg, .safetensors and .ranges to a C program: what build/tl_plan writes with --weights and --kernels, against an
interpreter of the same networks in Python that shares no code with it.

    tests/tiny_code.py [build/tl_plan]    everything; TINY_KEEP=DIR keeps what was generated, CC and TINY_FLAGS compile it

Networks are made here, with all ops, odd windows, folded activations, channels of zeros, biases that do not fit. Each is
chosen in several sets of schemes, written with and without regions of rows, compiled without a warning, and run: its results
must be those of the interpreter, bit for bit. What the linker counts of constants must be what was planned.

CMSIS_NN=DIR, a clone of github.com/ARM-software/CMSIS-NN: programs of --kernels cmsis-nn, too; by hand, in no check.
"""
import ctypes
import json
import math
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EXAMPLES = os.environ.get('TINY_EXAMPLES', ROOT + '/examples')      # where kernels are found first
WARN = ('-Wall -Wextra -Wconversion -Wpedantic -Wcast-qual -Wswitch-default -Wshadow -Wundef -std=c99 '
        '-ffp-contract=off -Werror').split()
f32 = lambda x: ctypes.c_float(x).value


def fail(text):
    sys.exit('tests/tiny_code.py: ' + text)


# -- networks --

class Node:
    def __init__(self, name, op, inputs, shape, **geometry):
        self.name, self.op, self.inputs, self.shape = name, op, inputs, shape
        self.kernel = geometry.get('kernel', (1, 1))
        self.stride = geometry.get('stride', (1, 1))
        self.pad = geometry.get('pad', (0, 0, 0, 0))
        self.dilation = geometry.get('dilation', (1, 1))
        self.act = geometry.get('act', 'none')
        self.axis = geometry.get('axis', 2)
        self.weights = self.bias = self.scale = None
        self.low, self.high = -1.0, 1.0
        self.fixed = None           # scale and zero that the model has
        self.span = None            # low and high, where they are not measured

    def size(self):
        return self.shape[0] * self.shape[1] * self.shape[2]


class Net:
    """Nodes in order; the last one is the result. Weights are lists in the order of the contract."""

    def __init__(self, seed):
        self.nodes, self.random = [], random.Random(seed)

    def find(self, name):
        return next(n for n in self.nodes if n.name == name)

    def input(self, name, shape):
        self.nodes.append(Node(name, 'input', [], shape))
        return name

    def numbers(self, count, size):
        return [f32(self.random.gauss(0, size)) for _ in range(count)]

    def add(self, name, op, inputs, **geometry):
        h, w, c = self.find(inputs[0]).shape
        n = Node(name, op, inputs, (h, w, c), **geometry)
        if op in ('conv2d', 'depthwise', 'avgpool', 'maxpool', 'pad'):
            t, l, b, r = n.pad
            h = (h + t + b - n.dilation[0] * (n.kernel[0] - 1) - 1) // n.stride[0] + 1
            w = (w + l + r - n.dilation[1] * (n.kernel[1] - 1) - 1) // n.stride[1] + 1
        channels = geometry.get('channels', c)
        terms = {'conv2d': n.kernel[0] * n.kernel[1] * c, 'depthwise': n.kernel[0] * n.kernel[1], 'linear': h * w * c}.get(op)
        if op == 'linear':
            if geometry.get('pixels'):
                terms = c
            else:
                h = w = 1
        if op == 'gavgpool':
            h = w = 1
        if op == 'upsample':
            h, w = h * n.stride[0], w * n.stride[1]
        if op == 'concat':
            sizes = [self.find(i).shape for i in inputs]
            h, w, channels = [sum(s[k] for s in sizes) if k == n.axis else sizes[0][k] for k in range(3)]
        n.shape = (h, w, channels)
        if terms:
            n.weights = self.numbers(terms * channels, 1 / math.sqrt(terms))
            n.bias = self.numbers(channels, 0.1)
        self.nodes.append(n)
        return name


def hash_model(net):
    value = 14695981039346656037
    for n in net.nodes:
        for byte in ('%s %s %d\n' % (n.name, n.op, 4 * n.size())).encode():
            value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return value


def relation(n, k):
    if n.op in ('conv2d', 'depthwise', 'avgpool', 'maxpool', 'pad'):
        tail = '/%d' % n.dilation[0] if n.dilation[0] > 1 else ''
        return '%d/%d/%d%s' % (n.kernel[0], n.stride[0], n.pad[0], tail) if n.op != 'pad' or n.pad[0] == n.pad[2] == 0 else None
    if n.op == 'upsample':
        return 'up%d' % n.stride[0]
    if n.op in ('add', 'mul', 'requantize', 'relu', 'relu6', 'sigmoid', 'tanh', 'hardswish', 'softmax') or (n.op == 'concat' and n.axis):
        return '1:1'
    if n.op == 'linear' and len(n.weights) // n.shape[2] == k.shape[2]:
        return '1:1' if n.shape[:2] == k.shape[:2] else None
    return None


def write_tlg(net, path):
    index = {n.name: i for i, n in enumerate(net.nodes)}
    lines = ['tlg 2']
    for i, n in enumerate(net.nodes):
        line = 'node %d %s %s ' % (i, n.name, n.op)
        if n.op == 'input':
            line += 'fwd=0 bwd=0 out=%d needs=none in=- dies' % (4 * n.size())
            if n.shape[0] > 1:
                line += ' rows=%d@0' % n.shape[0]
        else:
            line += 'fwd=%d bwd=0 out=%d needs=none in=%s grad=no' % (2 * n.size(), 4 * n.size(), ','.join(str(index[k]) for k in n.inputs))
            relations = [relation(n, net.find(k)) if k != n.inputs[-1] or net.find(k).shape[0] > 1 else 'whole' for k in n.inputs]
            if n.shape[0] > 1 and all(relations):
                line += ' rows=%d@0 rin=%s' % (n.shape[0], ','.join(relations))
            if n.weights:
                line += ' stored=%d:f32,%d:f32' % (4 * len(n.weights), 4 * len(n.bias))
        lines.append(line + (' keep' if n is net.nodes[-1] else ''))
    with open(path, 'w') as f:
        f.write('\n'.join(lines) + '\nend %d\n' % len(net.nodes))


def weight_shape(net, n):
    c = net.find(n.inputs[0]).shape[2]
    if n.op == 'conv2d':
        return [n.shape[2], n.kernel[0], n.kernel[1], c]
    if n.op == 'depthwise':
        return [n.kernel[0], n.kernel[1], n.shape[2]]
    return [n.shape[2], len(n.weights) // n.shape[2]]


def write_safetensors(net, path):
    header, data = {}, b''

    def put(name, dtype, shape, values, letter):
        nonlocal data
        block = struct.pack('<%d%s' % (len(values), letter), *values)
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(block)]}
        data += block
    for n in net.nodes:
        if not n.weights:
            continue
        integer = n.scale is not None
        put(n.name + '.weights', 'I8' if integer else 'F32', weight_shape(net, n), n.weights, 'b' if integer else 'f')
        put(n.name + '.bias', 'I32' if integer else 'F32', [len(n.bias)], n.bias, 'i' if integer else 'f')
        if integer:
            put(n.name + '.scale', 'F32', [len(n.scale)], n.scale, 'f')
    text = json.dumps(header).encode()
    with open(path, 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + data)


def write_ranges(net, path, model=None):
    lines = ['ranges 1', 'model %016x' % (hash_model(net) if model is None else model)]
    for n in net.nodes:
        line = 'tensor %s shape=%s low=%.9g high=%.9g' % (n.name, 'x'.join(map(str, n.shape)), n.low, n.high)
        if n.fixed:
            line += ' scale=%.9g zero=%d' % n.fixed
        lines.append(line)
    for n in net.nodes:
        if n.op != 'input':
            lines.append('node %s kernel=%dx%d stride=%dx%d pad=%s dilation=%dx%d act=%s axis=%d multiplier=%d' % (
                (n.name,) + tuple(n.kernel) + tuple(n.stride) + (','.join(map(str, n.pad)),) + tuple(n.dilation) +
                (n.act, n.axis, n.shape[2] // net.find(n.inputs[0]).shape[2] if n.op == 'depthwise' else 1)))
    lines.append('end %d' % (len(lines) - 2))
    with open(path, 'w') as f:
        f.write('\n'.join(lines) + '\n')


# -- the arithmetic of integers, as TensorFlow Lite defines it --

def half_away(x):
    return int(math.floor(x + 0.5)) if x >= 0 else int(math.ceil(x - 0.5))


def clamp(x, low, high):
    return low if x < low else high if x > high else x


def multiplier(real_over, real_under):
    """The quotient of two positive rationals, given as (numerator, denominator) pairs, as m 2^(e - 31) with 2^30 <= m < 2^31."""
    over, under = real_over[0] * real_under[1], real_over[1] * real_under[0]
    e = over.bit_length() - under.bit_length()
    while True:
        shift = 31 - e          # m = over / under 2^(31 - e), rounded half up
        top, bottom = (over << shift, under) if shift >= 0 else (over, under << -shift)
        m = (2 * top + bottom) // (2 * bottom)
        if m > (1 << 31) or (m == 1 << 31 and 2 * top >= bottom * (2 << 31) - bottom):
            e += 1
        elif m < 1 << 30:
            e -= 1
        else:
            break
    if m == 1 << 31:
        m, e = 1 << 30, e + 1
    return (0, 0) if e < -31 else (m, e)


def ratio(x):
    return x.as_integer_ratio()


def product(a, b):
    return (a[0] * b[0], a[1] * b[1])


def high_product(a, b):
    """gemmlowp's SaturatingRoundingDoublingHighMul of numbers that do not saturate: a b / 2^31, halves up."""
    return (a * b + (1 << 30)) >> 31


def shift_right(x, n):
    """gemmlowp's RoundingDivideByPOT: halves away from zero."""
    if n == 0:
        return x
    rest, threshold = x & (1 << n) - 1, ((1 << n) - 1 >> 1) + (x < 0)
    return (x >> n) + (rest > threshold)


def scale(x, m):
    """MultiplyByQuantizedMultiplier of TensorFlow Lite with two roundings."""
    if m[1] > 0:
        return high_product(clamp(x << m[1], -(1 << 31), (1 << 31) - 1), m[0])
    return shift_right(high_product(x, m[0]), -m[1])


def scale_wide(x, m):
    """The same of TensorFlow Lite for sums in 64 bits: a multiplier of 16 bits, one rounding."""
    reduced = 32767 if m[0] >= 0x7FFF0000 else (m[0] + (1 << 15)) >> 16
    shift = 15 - m[1]
    return (x * reduced + (1 << (shift - 1))) >> shift


class Quant:
    """Scale and zero point of a tensor, with the bounds of its integers."""

    def __init__(self, scale, zero, low, high):
        self.scale, self.zero, self.low, self.high = scale, zero, low, high


def even(x):
    return round(x)     # Python rounds halves to even


def affine(least, most):
    least, most = min(f32(least), 0.0), max(f32(most), 0.0)
    s = max(f32(f32(most - least) / 255.0), 2.0 ** -23)
    return Quant(s, clamp(-128 - even(f32(least / s)), -128, 127), -128, 127)


def symmetric(least, most, high):
    a = max(abs(f32(least)), abs(f32(most)))
    return Quant(max(f32(a / high), 2.0 ** -126) if a else 2.0 ** -23, 0, -high, high)


# -- the interpreter --

class Run:
    """One pass with a scheme for each node; tensors are lists in the format of their node."""

    def __init__(self, net, schemes, x):
        self.net, self.schemes, self.values, self.quants = net, schemes, {}, {}
        self.grown = []
        for n in net.nodes:
            if n.op == 'input':
                self.values[n.name, self.format(n)] = x[n.name]
            else:
                self.values[n.name, self.format(n)] = self.run(n)

    def format(self, n):
        return {'f32': 'f32', 'i8': 'i8', 'i8-channel': 'i8', 'w4a8': 'i8', 'w8a16': 'i16', 'i16': 'i16'}[self.schemes[n.name]]

    def quant(self, name, fmt):
        if (name, fmt) not in self.quants:
            self.quants[name, fmt] = self.find_quant(self.net.find(name), fmt)
        return self.quants[name, fmt]

    def find_quant(self, n, fmt):
        if self.format(n) == fmt and n.op in ('avgpool', 'maxpool', 'pad', 'upsample'):
            return self.quant(n.inputs[0], fmt)
        own = self.format(n) == fmt
        if fmt == 'i8' and n.fixed:
            return Quant(f32(n.fixed[0]), n.fixed[1], -128, 127)
        if fmt == 'i8' and own and n.op in ('softmax', 'sigmoid'):
            return Quant(1 / 256, -128, -128, 127)
        if fmt == 'i8' and own and n.op == 'tanh':
            return Quant(1 / 128, 0, -128, 127)
        if fmt == 'i16' and own and n.op in ('softmax', 'sigmoid', 'tanh'):
            return Quant(1 / 32768, 0, -32768, 32767)
        if fmt == 'i8':
            return affine(n.low, n.high)
        q = symmetric(n.low, n.high, 32767)
        return Quant(q.scale, 0, -32768, 32767)

    def value(self, name, fmt):
        """A tensor in a format, converted once."""
        if (name, fmt) in self.values:
            return self.values[name, fmt]
        n = self.net.find(name)
        have = self.format(n)
        x = self.values[name, have]
        if have == 'f32':
            q = self.quant(name, fmt)
            out = []
            for v in x:
                steps = clamp(f32(v / q.scale), float(q.low - q.zero), float(q.high - q.zero))
                out.append(even(steps) + q.zero)
        elif fmt == 'f32':
            q = self.quant(name, have)
            out = [f32((v - q.zero) * q.scale) for v in x]
        else:
            a, b = self.quant(name, have), self.quant(name, fmt)
            m = multiplier(ratio(a.scale), ratio(b.scale))
            out = [clamp(scale(v - a.zero, m) + b.zero, b.low, b.high) for v in x]
        self.values[name, fmt] = out
        return out

    def bounds(self, n, q):
        act = n.op if n.op in ('relu', 'relu6') else n.act
        low, high = q.low, q.high
        if act != 'none':
            low = max(low, q.zero)
        if act == 'relu6':
            high = min(high, half_away(f32(6.0 / q.scale)) + q.zero)
        return low, high

    def float_bounds(self, n, x):
        act = n.op if n.op in ('relu', 'relu6') else n.act
        return max(x, 0.0) if act == 'relu' else clamp(x, 0.0, 6.0) if act == 'relu6' else x

    def weights(self, n, q_in, wide):
        """Integers of weights and biases, and the scale of each channel."""
        count, channels = len(n.weights), n.shape[2]
        of = (lambda i: i % channels) if n.op == 'depthwise' else (lambda i: i // (count // channels))
        numbers = n.weights if n.scale is None else [f32(w * f32(n.scale[of(i) % len(n.scale)])) for i, w in enumerate(n.weights)]
        quarters, keeps = self.schemes[n.name] == 'w4a8', n.scale is not None and self.schemes[n.name] != 'w4a8'
        if not keeps:
            shrink = (lambda w: f32(w / 7)) if quarters else (lambda w: w)
            if self.schemes[n.name] == 'i8':
                scales = [symmetric(min(numbers), max(numbers), 127).scale] * channels
            else:
                scales = []
                for c in range(channels):
                    own = [w for i, w in enumerate(numbers) if of(i) == c]
                    scales.append(symmetric(shrink(min(own)), shrink(max(own)), 127).scale)
        else:
            scales = [f32(n.scale[c % len(n.scale)]) for c in range(channels)]
        reals = n.bias
        if n.scale is not None:
            fixed = self.net.find(n.inputs[0]).fixed
            reals = [b * f32(fixed[0]) * f32(n.scale[c % len(n.scale)]) for c, b in enumerate(n.bias)]
        most = (1 << 31) - 1 - (0 if wide else 255 * 127 * (7 if quarters else 1) * (count // channels))
        for c in range(channels):
            if abs(reals[c]) > most * q_in.scale * scales[c]:
                s = f32(abs(reals[c]) / (most * q_in.scale) * (1 + 1e-6))
                self.grown.append((n.name, c))
                for k in range(channels) if self.schemes[n.name] == 'i8' else (c,):
                    scales[k] = s
        if quarters:
            integers = self.quarters(numbers, of, scales)
        elif not keeps:
            integers = [clamp(even(f32(w / scales[of(i)])), -127, 127) for i, w in enumerate(numbers)]
        else:
            integers = n.weights
        biases = [half_away(b / (q_in.scale * scales[c])) for c, b in enumerate(reals)]
        return integers, biases, scales

    @staticmethod
    def quarters(numbers, of, scales):
        """Weights of 4 bits, each times the factor of its group: 32 terms of a channel."""
        integers = [0] * len(numbers)
        for c, s in enumerate(scales):
            own = [i for i in range(len(numbers)) if of(i) == c]
            for group in (own[k:k + 32] for k in range(0, len(own), 32)):
                step = Fraction(f32(max(abs(numbers[i]) for i in group) / 7))
                factor = min(127, math.ceil(step / Fraction(s)))
                for i in group if factor else ():
                    integers[i] = factor * clamp(even(f32(numbers[i] / f32(s * factor))), -7, 7)
        return integers

    def windows(self, n, k):
        """For each pixel of the output: the pixels of the input under its window, as (tap, pixel)."""
        h, w = k.shape[:2]
        for y in range(n.shape[0]):
            for x in range(n.shape[1]):
                taps = []
                for ky in range(n.kernel[0]):
                    for kx in range(n.kernel[1]):
                        at_y = y * n.stride[0] - n.pad[0] + ky * n.dilation[0]
                        at_x = x * n.stride[1] - n.pad[1] + kx * n.dilation[1]
                        if 0 <= at_y < h and 0 <= at_x < w:
                            taps.append((ky * n.kernel[1] + kx, at_y * w + at_x))
                yield taps

    def sums(self, n, x, zero, weights, biases, add):
        """Sums of products, pixel by pixel; add(sum, a, b) adds one."""
        k = self.net.find(n.inputs[0])
        C, N = k.shape[2], n.shape[2]
        if n.op == 'linear':
            terms = len(weights) // N
            for r in range(len(x) // terms):
                for j in range(N):
                    s = biases[j]
                    for i in range(terms):
                        s = add(s, x[r * terms + i] - zero, weights[j * terms + i])
                    yield j, s
            return
        taps_all = n.kernel[0] * n.kernel[1]
        for taps in self.windows(n, k):
            for j in range(N):
                s = biases[j]
                if n.op == 'conv2d':
                    for tap, pixel in taps:
                        base, weight = pixel * C, (j * taps_all + tap) * C
                        for c in range(C):
                            s = add(s, x[base + c] - zero, weights[weight + c])
                else:
                    for tap, pixel in taps:
                        s = add(s, x[pixel * C + j // (N // C)] - zero, weights[tap * N + j])
                yield j, s

    def run(self, n):
        fmt = self.format(n)
        return self.run_float(n) if fmt == 'f32' else self.run_integer(n, fmt)

    def run_float(self, n):
        x = [self.value(i, 'f32') for i in n.inputs]
        bound = lambda v: self.float_bounds(n, v)
        if n.weights:
            add = lambda s, a, b: f32(s + f32(a * b))
            numbers = n.weights if n.scale is None else None
            return [bound(s) for _, s in self.sums(n, x[0], 0, numbers, n.bias, add)]
        k = self.net.find(n.inputs[0])
        C = k.shape[2]
        if n.op in ('avgpool', 'maxpool'):
            out = []
            for taps in self.windows(n, k):
                for c in range(C):
                    values = [x[0][pixel * C + c] for _, pixel in taps]
                    s = 0.0
                    for v in values:
                        s = f32(s + v)
                    out.append(bound(max(values) if n.op == 'maxpool' else f32(s / len(values))))
            return out
        if n.op == 'gavgpool':
            out = []
            for c in range(C):
                s = 0.0
                for i in range(c, len(x[0]), C):
                    s = f32(s + x[0][i])
                out.append(bound(f32(s / (len(x[0]) // C))))
            return out
        if n.op == 'add':
            return [bound(f32(a + b)) for a, b in self.pairs(x)]
        if n.op == 'mul':
            return [bound(f32(a * b)) for a, b in self.pairs(x)]
        if n.op in ('relu', 'relu6', 'requantize'):
            return [bound(a) for a in x[0]]
        if n.op == 'sigmoid':
            return [f32(1 / f32(1 + exp_float(-a))) for a in x[0]]
        if n.op == 'tanh':
            return [f32(1 - f32(2 / f32(exp_float(2 * a) + 1))) for a in x[0]]
        if n.op == 'hardswish':
            return [f32(f32(a * clamp(f32(a + 3), 0.0, 6.0)) / 6) for a in x[0]]
        if n.op == 'softmax':
            c, out = n.shape[2], []
            for r in range(0, len(x[0]), c):
                e = [exp_float(f32(a - max(x[0][r:r + c]))) for a in x[0][r:r + c]]
                total = 0.0
                for a in e:
                    total = f32(total + a)
                out += [f32(a * f32(1 / total)) for a in e]
            return out
        return self.moved(n, x, 0.0)

    def pairs(self, x):
        """Elements of two tensors side by side; the second one may be one pixel for all."""
        return zip(x[0], x[1] * (len(x[0]) // len(x[1])))

    def moved(self, n, x, zero):
        """Concatenations, pads, upsamplings of values that are in the output's format."""
        h, w, c = n.shape
        out = [zero] * n.size()
        if n.op == 'concat':
            at = [0, 0, 0]
            for name, values in zip(n.inputs, x):
                H, W, C = self.net.find(name).shape
                for i, v in enumerate(values):
                    place = [i // (W * C) + at[0], i // C % W + at[1], i % C + at[2]]
                    out[(place[0] * w + place[1]) * c + place[2]] = v
                at[n.axis] += (H, W, C)[n.axis]
            return out
        H, W, C = self.net.find(n.inputs[0]).shape
        for i in range(n.size()):
            y, u = i // (w * c), i // c % w
            if n.op == 'upsample':
                y, u = y // n.stride[0], u // n.stride[1]
            else:
                y, u = y - n.pad[0], u - n.pad[1]
            if 0 <= y < H and 0 <= u < W:
                out[i] = x[0][(y * W + u) * C + i % c]
        return out

    def run_integer(self, n, fmt):
        x = [self.value(i, fmt) for i in n.inputs]
        q = self.quant(n.name, fmt)
        k = [self.quant(i, fmt) for i in n.inputs]
        low, high = self.bounds(n, q)
        wide = fmt == 'i16'
        finish = lambda v: clamp(v + q.zero, low, high)
        if n.weights:
            integers, biases, scales = self.weights(n, k[0], wide)
            factors = [multiplier(product(ratio(k[0].scale), ratio(s)), ratio(q.scale)) for s in scales]
            add = lambda s, a, b: s + a * b
            rescale = scale_wide if wide else scale
            return [finish(rescale(s, factors[j])) for j, s in self.sums(n, x[0], k[0].zero, integers, biases, add)]
        source = self.net.find(n.inputs[0])
        C = source.shape[2]
        if n.op in ('avgpool', 'maxpool'):
            out = []
            for taps in self.windows(n, source):
                for c in range(C):
                    values = [x[0][pixel * C + c] for _, pixel in taps]
                    s, size = sum(values), len(values)
                    mean = (s + size // 2) // size if s > 0 else -((-s + size // 2) // size)
                    out.append(clamp(max(values) if n.op == 'maxpool' else mean, low, high))
            return out
        if n.op == 'gavgpool':
            pixels = len(x[0]) // C
            m, e = multiplier(ratio(k[0].scale), ratio(q.scale))
            shift = min(pixels.bit_length() - 1, 32, 31 + e)
            m, e = (m << shift) // pixels, e - shift
            return [finish(scale(sum(x[0][c::C]) - pixels * k[0].zero, (m, e))) for c in range(C)]
        if n.op == 'add':
            twice, left = 2 * max(k[0].scale, k[1].scale), 15 if wide else 20
            a, b = (multiplier(ratio(i.scale), ratio(twice)) for i in k)
            m = multiplier(ratio(twice), ratio(q.scale * 2.0 ** left))
            return [finish(scale(scale((u - k[0].zero) << left, a) + scale((v - k[1].zero) << left, b), m)) for u, v in self.pairs(x)]
        if n.op == 'mul':
            m = multiplier(product(ratio(k[0].scale), ratio(k[1].scale)), ratio(q.scale))
            return [finish(scale((u - k[0].zero) * (v - k[1].zero), m)) for u, v in self.pairs(x)]
        if n.op in ('relu', 'relu6', 'requantize'):
            m = multiplier(ratio(k[0].scale), ratio(q.scale))
            return [finish(scale(v - k[0].zero, m)) for v in x[0]]
        if wide and n.op in ('sigmoid', 'tanh'):
            return [curve(v, ratio(k[0].scale), n.op == 'tanh') for v in x[0]]
        if wide and n.op == 'hardswish':
            return [hardswish_wide(v, Fraction(k[0].scale), Fraction(q.scale)) for v in x[0]]
        if wide and n.op == 'softmax':
            return softmax_wide(x[0], n.shape[2], k[0].scale)
        if n.op in ('sigmoid', 'tanh', 'hardswish'):
            of = {'sigmoid': lambda v: 1 / (1 + math.exp(-v)), 'tanh': math.tanh,
                  'hardswish': lambda v: v * clamp(v + 3, 0, 6) / 6}[n.op]
            return [clamp(half_away(of((v - k[0].zero) * k[0].scale) / q.scale + q.zero), -128, 127) for v in x[0]]
        if n.op == 'softmax':
            return self.softmax(n, x[0], k[0])
        if n.op == 'concat':
            moved = []
            for i, values in zip(k, x):
                m = multiplier(ratio(i.scale), ratio(q.scale))
                same = m == (1 << 30, 1) and i.zero == q.zero
                moved.append(values if same else [finish(scale(v - i.zero, m)) for v in values])
            return self.moved(n, moved, q.zero)
        return self.moved(n, x, q.zero)

    def softmax(self, n, x, q):
        """As gemmlowp has it: exponentials of Q5.26, their sum in Q12.19, its reciprocal by Newton's method."""
        c, out = n.shape[2], []
        m = multiplier(product(ratio(q.scale), (1 << 26, 1)), (1, 1))
        least = -((31 << 26) >> m[1])
        for r in range(0, len(x), c):
            top = max(x[r:r + c])
            e = [exp_fixed(scale(v - top, m)) if v - top >= least else None for v in x[r:r + c]]
            total = sum(shift_right(v, 12) for v in e if v is not None)
            zeros = 32 - total.bit_length()
            share = reciprocal_fixed((total << zeros) - (1 << 31))
            for v in e:
                out.append(-128 if v is None else clamp(shift_right(high_product(share, v), 35 - zeros) - 128, -128, 127))
        return out


def sigmoid_table():
    """Of TensorFlow Lite: sigmoid(i / 24) 2^16, moved by half of what the middle of a line misses."""
    s = lambda i: 1 / (1 + math.exp(-i / 24))
    return [half_away(65536 * (s(i) + (s(i + 0.5) - (s(i) + s(i + 1)) / 2) / 2)) for i in range(255)] + [65535]


def between(table, x, parts):
    """parts times the value at x parts of an entry."""
    i, part = divmod(x, parts)
    return table[i] * (parts - part) + table[i + 1] * part


def curve(q, s, is_tanh, table=sigmoid_table()):
    """LOGISTIC and TANH of TensorFlow Lite in int16."""
    real, shift, powers = s[0] * 12288 / s[1], 0, (3, 6) if is_tanh else (3,)
    near = [p for p in powers if abs(math.log2(real / p)) < 1e-3]
    while not near and real <= 16383.5:
        real, shift = 2 * real, shift + 1
    x = (q * (near[0] if near else int(real)) + ((1 << shift) >> 1)) >> shift
    parts = 256 if is_tanh else 512
    y = between(table, abs(x), parts) if abs(x) < 255 * parts else parts * (65535 if is_tanh else 65534)
    if is_tanh:
        y -= parts << 15
        return (y + 128 if x >= 0 else 127 - y) >> 8
    return (y + 512 if x >= 0 else (1 << 25) + 511 - y) >> 10


def hardswish_wide(q, s_in, s_out):
    """The real one, rounded as nn_tiny.h does it: the share to 30 bits, the product to 14, then the output."""
    share = clamp(scale(q << 14, multiplier((s_in.numerator << 15, s_in.denominator * 3), (1, 1))), -(1 << 29), 1 << 29) + (1 << 29)
    value = high_product(q << 15, share)
    real = float(s_in * q * clamp(s_in * q + 3, 0, 6) / 6 / s_out)
    made = clamp(scale(value, multiplier((s_in.numerator, s_in.denominator << 14), ratio(float(s_out)))), -32768, 32767)
    if abs(made - clamp(real, -32768, 32767)) > 0.51:
        fail('hardswish: %d is not near %g' % (made, real))
    return made


def lookup_table(of, s_in, zero, s_out):
    """LUTPopulate of TensorFlow Lite for int16, in doubles."""
    first, last, steps, table = s_in * (-32768 - zero), s_in * (32767 - zero), 65536 / (s_out * 65535), []
    step = (last - first) / 512
    for i in range(512):
        here = half_away(of(first + i * step) * steps)
        misses = half_away((of(first + (i + 1) * step) * steps + here) / 2) - half_away(of(first + i * step + step / 2) * steps)
        table.append(clamp(here - half_away(misses / 2), -32768, 32767))
    return table + [clamp(half_away(of(last) * steps), -32768, 32767)]


def softmax_wide(x, c, s, e=lookup_table(math.exp, 10 / 65535, 32767, 2 / 65535),
                 reciprocal=lookup_table(lambda v: 1 / (1 + v), 1 / 65535, -32768, 2 / 65535)):
    """SOFTMAX of TensorFlow Lite in int16."""
    look = lambda table, v: (between(table + table[-1:], v + 32768, 128) + 64) >> 7
    m, out = multiplier((ratio(s)[0] * 65535, ratio(s)[1] * 10), (1, 1)), []
    for r in range(0, len(x), c):
        top = max(x[r:r + c])
        parts = [look(e, clamp(scale(v - top, m), -65535, 0) + 32767) for v in x[r:r + c]]
        zeros = 32 - sum(parts).bit_length()
        share = look(reciprocal, clamp(((sum(parts) << (zeros - 1)) + (1 << 13) >> 14) - 98304, -32768, 32767))
        out += [min((p * share >> 30 - zeros) + 1 >> 1, 32767) for p in parts]
    return out


def exp_float(x):
    """e^x by a polynomial in f32, each operation rounded once (Cephes, expf.c)."""
    x = clamp(x, -87.0, 87.0)
    k = round(f32(x * f32(1.44269504)))
    f = f32(f32(x - f32(k * 0.693359375)) + f32(k * f32(2.12194440e-4)))
    p = f32(1.9875691500e-4)
    for c in (1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1):
        p = f32(f32(p * f) + f32(c))
    p = f32(f32(f32(p * f32(f * f)) + f) + 1)
    return f32(p * 2.0 ** k)


def exp_fixed(a):
    """e^a of a <= 0 in Q5.26, as Q0.31."""
    if a == 0:
        return (1 << 31) - 1
    quarter = 1 << 24
    part = (a & quarter - 1) - quarter
    x = (part << 5) + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    rest = shift_right(high_product(shift_right(x4, 2) + x3, 715827883) + x2, 1)
    result = 1895147668 + high_product(1895147668, x + rest)
    for i, power in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        if (part - a) >> (24 + i) & 1:
            result = high_product(result, power)
    return result


def reciprocal_fixed(a):
    """1 / (1 + a) of 0 <= a < 1 in Q0.31."""
    half = (a + (1 << 31)) // 2     # RoundingHalfSum of a and 2^31 - 1
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        x += clamp(high_product(x, (1 << 29) - high_product(half, x)) << 2, -(1 << 31), (1 << 31) - 1)
    return clamp(x << 1, -(1 << 31), (1 << 31) - 1)


# -- networks that are tested --

def measure(net, x):
    """Ranges from a pass in f32, so that integers are used well."""
    schemes = {n.name: 'f32' for n in net.nodes}
    floats = {n.name: n for n in net.nodes}
    run = Run.__new__(Run)
    run.net, run.schemes, run.values, run.quants, run.grown = net, schemes, {}, {}, []
    for n in net.nodes:
        if n.op == 'input':
            v = x[n.name]
        elif n.scale is not None:
            v = None
        else:
            v = run.run_float(n)
        if v is None:
            break
        run.values[n.name, 'f32'] = v
        n.low, n.high = n.span or (float('%.9g' % f32(min(v))), float('%.9g' % f32(max(v))))
    assert floats


def keyword_net(seed=1, width=64, blocks=4):
    """DS-CNN of MLPerf Tiny: 49 x 10 features to 12 words."""
    net = Net(seed)
    net.input('mfcc', (49, 10, 1))
    last = net.add('conv', 'conv2d', ['mfcc'], channels=width, kernel=(10, 4), stride=(2, 2), pad=(4, 1, 5, 1), act='relu')
    for i in range(blocks):
        last = net.add('dw%d' % i, 'depthwise', [last], kernel=(3, 3), pad=(1, 1, 1, 1), act='relu')
        last = net.add('pw%d' % i, 'conv2d', [last], channels=width, act='relu')
    last = net.add('pool', 'gavgpool', [last])
    last = net.add('fc', 'linear', [last], channels=12)
    net.add('words', 'softmax', [last])
    return net


def residual_net(seed):
    """Odd windows, pools, adds, relu6, a head of fully connected layers."""
    net = Net(seed)
    net.input('image', (14, 11, 3))
    a = net.add('stem', 'conv2d', ['image'], channels=8, kernel=(3, 5), stride=(2, 1), pad=(1, 2, 0, 1), act='relu6')
    b = net.add('left', 'depthwise', [a], kernel=(3, 3), pad=(2, 2, 2, 2), dilation=(2, 2))
    c = net.add('right', 'conv2d', [a], channels=8, kernel=(1, 3), pad=(0, 1, 0, 1), act='relu')
    d = net.add('sum', 'add', [b, c], act='relu')
    e = net.add('most', 'maxpool', [d], kernel=(2, 3), stride=(1, 2), pad=(1, 0, 0, 1))
    f = net.add('mean', 'avgpool', [e], kernel=(3, 2), stride=(2, 2), pad=(0, 1, 1, 0))
    g = net.add('wide', 'depthwise', [f], channels=16, kernel=(2, 2))
    h = net.add('clip', 'relu6', [g])
    net.add('head', 'linear', [h], channels=7)
    net.find('stem').weights[-45:] = [0.0] * 45            # a channel of zeros, with a bias
    for name in ('weights', 'bias'):                        # a sum of a small number and a large one
        setattr(net.find('left'), name, [f32(0.01 * w) for w in getattr(net.find('left'), name)])
    net.find('right').weights[:24] = [1e-12] * 24           # one whose bias does not fit
    net.find('right').bias[0] = 4.0
    return net


def long_net(seed):
    """Sums as long as w4a8 takes, with biases that leave room for products of 8 bits, and not for those times a factor."""
    net = Net(seed)
    net.input('x', (1, 1, 8192))
    net.add('sums', 'linear', ['x'], channels=4)
    sums = net.find('sums')
    step = max(map(abs, sums.weights)) / 7 / 127 * 4 / 255      # of the largest channel, for inputs from -2 to 2
    sums.bias = [f32(b * step) for b in (1.5e9, -1.0e9, 0.6e9, 0.1e9)]
    return net


def branch_net(seed):
    """Concatenations, products, functions of one number, pads, upsamplings, pixels by matrices."""
    net = Net(seed)
    net.input('x', (16, 6, 4))
    a = net.add('a', 'conv2d', ['x'], channels=5, kernel=(3, 3), pad=(1, 1, 1, 1))
    b = net.add('b', 'sigmoid', [a])
    c = net.add('c', 'mul', [a, b])
    v = net.add('v', 'gavgpool', [c])
    c = net.add('w', 'mul', [c, v])
    d = net.add('d', 'maxpool', [c], kernel=(2, 2), stride=(2, 2))
    e = net.add('e', 'upsample', [d], stride=(2, 2))
    g = net.add('g', 'concat', [e, a], axis=2)
    h = net.add('h', 'pad', [g], pad=(0, 1, 0, 2))
    i = net.add('i', 'conv2d', [h], channels=6, kernel=(2, 2), stride=(1, 1))
    j = net.add('j', 'hardswish', [i])
    n = net.add('n', 'maxpool', [j], kernel=(4, 3), stride=(3, 3))
    u = net.add('u', 'pad', [n], pad=(1, 0, 1, 1))
    k = net.add('k', 'linear', [u], channels=4, pixels=True)
    m = net.add('m', 'tanh', [k])
    o = net.add('o', 'concat', [m, k], axis=1)
    p = net.add('p', 'concat', [o, o], axis=0)
    q = net.add('q', 'relu', [p])
    net.add('r', 'requantize', [q])
    return net


def curve_net(seed):
    """Functions of one number by rows, and a softmax of each pixel: what w8a16 need not leave i16 for."""
    net = Net(seed)
    net.input('x', (12, 7, 3))
    a = net.add('a', 'conv2d', ['x'], channels=6, kernel=(3, 3), pad=(1, 1, 1, 1))
    b = net.add('b', 'sigmoid', [a])
    c = net.add('c', 'depthwise', [b], kernel=(3, 3), pad=(1, 1, 1, 1))
    d = net.add('d', 'tanh', [c])
    e = net.add('e', 'conv2d', [d], channels=9)
    f = net.add('f', 'hardswish', [e])
    g = net.add('g', 'conv2d', [f], channels=5, kernel=(2, 2), stride=(2, 1))
    h = net.add('h', 'softmax', [g])
    i = net.add('i', 'conv2d', [h], channels=4)
    j = net.add('j', 'tanh', [i])
    net.add('k', 'softmax', [j])
    net.find('a').weights = [f32(3 * w) for w in net.find('a').weights]
    net.find('e').weights = [f32(6 * w) for w in net.find('e').weights]
    net.find('a').span, net.find('c').span = (-8.0, 8.0), (-16.0, 16.0)     # scales near 2^-12 and 2^-11
    return net


def float_net(seed):
    """What f32 has kernels for."""
    net = Net(seed)
    net.input('x', (9, 7, 2))
    a = net.add('a', 'conv2d', ['x'], channels=4, kernel=(3, 3), stride=(2, 1), pad=(1, 1, 1, 1), act='relu6')
    b = net.add('b', 'depthwise', [a], channels=8, kernel=(3, 2), pad=(1, 0, 1, 1), act='relu')
    c = net.add('c', 'conv2d', [b], channels=8)
    d = net.add('d', 'add', [b, c])
    e = net.add('e', 'mul', [d, c])
    f = net.add('f', 'concat', [e, b], axis=2)
    m = net.add('m', 'gavgpool', [f])
    f = net.add('n', 'add', [f, m], act='relu')
    g = net.add('g', 'maxpool', [f], kernel=(2, 2))
    h = net.add('h', 'avgpool', [g], kernel=(2, 2), pad=(1, 0, 0, 1))
    i = net.add('i', 'relu', [h])
    j = net.add('j', 'gavgpool', [i])
    net.add('k', 'linear', [j], channels=5)
    return net


def bare_net(seed):
    """No weights: there are no constants. Names that are no names of C, two of which are the same there."""
    net = Net(seed)
    net.input('/x:0', (10, 6, 3))
    a = net.add('a.b', 'add', ['/x:0', '/x:0'], act='relu')
    b = net.add('b', 'maxpool', [a], kernel=(2, 2), stride=(2, 2))
    net.add('A--b/', 'relu6', [b])
    return net


def quantised_net(seed):
    """A model that is in 8 bits already: weights, biases, scales and zero points are its own."""
    net = Net(seed)
    r = net.random
    net.input('x', (6, 6, 3))
    a = net.add('a', 'conv2d', ['x'], channels=6, kernel=(3, 3), pad=(1, 1, 1, 1), act='relu')
    net.add('b', 'linear', [a], channels=4)
    for n in net.nodes:
        n.fixed = (f32(r.uniform(0.01, 0.05)), r.randrange(-128, 128))
    for name in ('a', 'b'):
        n = net.find(name)
        n.scale = [f32(r.uniform(0.001, 0.01)) for _ in range(n.shape[2] if name == 'a' else 1)]
        n.weights = [r.randrange(-127, 128) for _ in n.weights]
        n.bias = [r.randrange(-20000, 20000) for _ in n.bias]
    return net


def read_net(stem):
    """The network of the three files of an importer."""
    net, index = Net(6), []
    for line in open(stem + '.tlg'):
        words = line.split()
        if not words or words[0] != 'node':
            continue
        values = dict(w.split('=', 1) for w in words[4:] if '=' in w)
        inputs = [] if values['in'] == '-' else [index[int(i)] for i in values['in'].split(',')]
        net.nodes.append(Node(words[2], words[3], inputs, None))
        index.append(words[2])
    pair = lambda text: tuple(map(int, re.split('[x,]', text)))
    for line in open(stem + '.ranges'):
        words = line.split('#')[0].split()
        if not words or words[0] not in ('tensor', 'node'):
            continue
        n, values = net.find(words[1]), dict(w.split('=', 1) for w in words[2:])
        if words[0] == 'tensor':
            shape = pair(values['shape'])
            n.shape = shape if len(shape) == 3 else (1, 1) + shape
            n.low, n.high = float(values.get('low', -1)), float(values.get('high', 1))
            if 'scale' in values:
                n.fixed = (float(values['scale']), int(values['zero']))
        else:
            for key in ('kernel', 'stride', 'pad', 'dilation'):
                setattr(n, key, pair(values[key]) if key in values else getattr(n, key))
            n.act, n.axis = values.get('act', 'none'), int(values.get('axis', 2))
    data = open(stem + '.safetensors', 'rb').read()
    length = struct.unpack('<Q', data[:8])[0]
    for name, t in json.loads(data[8:8 + length]).items():
        if name == '__metadata__':
            continue
        node, what = name.rsplit('.', 1)
        first, end = t['data_offsets']
        letter = {'F32': 'f', 'I8': 'b', 'I32': 'i'}[t['dtype']]
        values = [v[0] for v in struct.iter_unpack('<' + letter, data[8 + length + first:8 + length + end])]
        setattr(net.find(node), what, values)
    return net


# -- programs --

MAIN = """
#include <stdio.h>
#include <string.h>
#include "net.h"
#include "net_scales.h"

static const unsigned char input[] = { %(bytes)s };

void net_load(int32_t micro_batch) {
    (void)micro_batch;
    memcpy(%(input)s, input, sizeof input);
}

int main(void) {
    const unsigned char *result;
    size_t i;
%(scales)s
    net_run();
    result = %(result)s;
    for (i = 0; i < %(result)s_BYTES; i++) printf("%%02x", result[i]);
    return 0;
}
"""

LETTERS = {'f32': 'f', 'i8': 'b', 'i16': 'h'}


def run_command(command, expect=0):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if result.returncode != expect:
        fail('%s: exit %d\n%s%s' % (' '.join(command), result.returncode, result.stdout[-2000:], result.stderr[-4000:]))
    return result


def write_model(net, folder):
    write_tlg(net, folder + '/net.tlg')
    write_safetensors(net, folder + '/net.safetensors')
    write_ranges(net, folder + '/net.ranges')


def write_code(plan, folder, how, out, kernels='own'):
    os.makedirs(out, exist_ok=True)
    return run_command([plan, folder + '/net.tlg', '--inference'] + how + ['--c-code=calls', 'net', '--weights', folder + '/net.safetensors',
                        '--ranges', folder + '/net.ranges', '--kernels', kernels, '-o', out, '--json', out + '/plan.json'])


def schemes_of(net, out):
    """The scheme of each node, as tl_plan has chosen it; calls of whole tensors name it."""
    chosen = {n['name']: n['scheme'] for n in json.load(open(out + '/plan.json'))['precision']['nodes']}
    source = open(out + '/net.c').read()
    for n in net.nodes:
        if n.op == 'input':
            continue
        called = re.search(r'net_(\w+)_forward\(NET_NODE_\w+, [^;]*;  // %s: step' % re.escape(n.name), source)
        if called and called.group(1) != '%s_%s' % (n.op, chosen[n.name].replace('-', '_')):
            fail('%s: %s is called as %s, in %s' % (out, n.name, called.group(1), chosen[n.name]))
        if not called and 'net_operand' not in source:
            fail('%s: %s is not called' % (out, n.name))
    return {n.name: chosen[n.name] for n in net.nodes}


def build_cmsis(folder):
    """CMSIS-NN as an archive; the flags to compile with it, and to link."""
    source = os.environ['CMSIS_NN']
    archive = folder + '/cmsis.a'
    objects = []
    for part in ('BasicMath', 'Convolution', 'FullyConnected', 'NNSupport', 'Pooling', 'Softmax'):
        where = '%s/Source/%sFunctions' % (source, part)
        for name in sorted(os.listdir(where)):
            if name.endswith('.c') and not re.search('_f16|_f32|_flt', name):
                objects.append('%s/%s.o' % (folder, name))
                run_command(['gcc', '-O2', '-w', '-fwrapv', '-I' + source + '/Include', '-c', where + '/' + name, '-o', objects[-1]])
    run_command(['ar', 'rc', archive] + objects)
    return ['-isystem', source + '/Include'], [archive]


NEEDED = """
#include <stdio.h>
#include <arm_nnfunctions.h>

int main(void) {
    int32_t most = 0, needed, k;
    %s
    printf("%%d", most);
    return 0;
}
"""


def check_scratch(net, run, out, flags, report):
    """What CMSIS-NN asks for, by its own functions, is there, and what tl_plan says of it is true."""
    asks = []
    for n in net.nodes:
        if n.op == 'input' or run.format(n) != 'i8':
            continue
        k = net.find(n.inputs[0]).shape
        dims = 'cmsis_nn_dims in = { 1, %d, %d, %d }, out = { 1, %d, %d, %d }, filter = { %d, %d, %d, %d };' % (tuple(k) + tuple(n.shape) + (
            (n.shape[2],) + tuple(n.kernel) + (k[2],) if n.op == 'conv2d' else (1,) + tuple(n.kernel) + (n.shape[2],)))
        tiles = '{ %d, %d }, { %d, %d }, { %d, %d }, { -128, 127 } };' % (n.stride[1], n.stride[0], n.pad[1], n.pad[0], n.dilation[1], n.dilation[0])
        if n.op == 'conv2d':
            asks.append((dims + ' cmsis_nn_conv_params p = { 0, 0, ' + tiles, 'arm_convolve_wrapper_s8_get_buffer_size%s(&p, &in, &filter, &out)'))
        elif n.op == 'depthwise':
            asks.append((dims + ' cmsis_nn_dw_conv_params p = { 0, 0, %d, ' % (n.shape[2] // k[2]) + tiles,
                         'arm_depthwise_conv_wrapper_s8_get_buffer_size%s(&p, &in, &filter, &out)'))
        elif n.op == 'avgpool':
            asks.append(('', 'arm_avgpool_s8_get_buffer_size%%s(%d, %d)' % (n.shape[1], k[2])))
    lines = ['{ %s for (k = 0; k < 2; k++) { needed = k ? %s : %s; if (needed > most) most = needed; } }' % (d, c % '_dsp', c % '') for d, c in asks]
    with open(out + '/needed.c', 'w') as f:
        f.write(NEEDED % '\n    '.join(lines))
    run_command(['gcc', '-w'] + flags[0] + ['-o', out + '/needed', out + '/needed.c'] + flags[1])
    needed = int(run_command([out + '/needed']).stdout)
    said = re.search(r', (\d+) bytes of RAM for CMSIS-NN', report)
    said = int(said.group(1)) if said else 0
    sizes = run_command(['nm', '-S', out + '/net_kernels.o']).stdout
    there = re.search(r' (\w+) b net_scratch', sizes)
    there = int(there.group(1), 16) if there else 0
    if there != said or needed > there:
        fail('%s: CMSIS-NN asks for %d bytes, there are %d, tl_plan says %d' % (out, needed, there, said))


def check_cmsis(plan, net, run, folder, how, out, expected, flags):
    report = write_code(plan, folder, how, out, kernels='cmsis-nn')
    got, _ = compile_and_run(net, run, out, flags)
    if got != expected:
        wrong = [i for i in range(len(got)) if got[i] != expected[i]]
        fail('%s: %d of %d results differ, the first at %d: %r, not %r' % (out, len(wrong), len(got), wrong[0], got[wrong[0]], expected[wrong[0]]))
    if any(run.format(n) == 'i8' for n in net.nodes):
        check_scratch(net, run, out, flags, report.stdout)
    print('%-22s CMSIS-NN: the same' % os.path.basename(folder))


def macro(name):
    """What stands in macros for the name of a node, unless others have the same."""
    return re.sub('[^A-Z0-9]+', '_', name.upper()).strip('_')


def shortest(x):
    """A float of C in the fewest digits."""
    text = next(t for t in ('%.*g' % (digits, x) for digits in range(1, 10)) if f32(float(t)) == x)
    return text + ('f' if '.' in text or 'e' in text else '.0f')


def check_scales(net, run, out, result, ends):
    """Scales and zero points of what the caller writes and reads in integers, and of nothing else; lines of C that ask for them."""
    formats = {n.name: ('NET_INPUT_' + macro(n.name), run.format(n)) for n in net.nodes if n.op == 'input'}
    formats[net.nodes[-1].name] = (result, ends)
    expected = []
    for name, (what, fmt) in formats.items():
        if fmt != 'f32':
            q = run.quant(name, fmt)
            expected += [(what + '_SCALE', shortest(q.scale)), (what + '_ZERO', '%d' % q.zero)]
    got = re.findall(r'#define (\w+) (\S+)', open(out + '/net_scales.h').read())
    if got != expected:
        fail('%s: scales are %s, not %s' % (out, got, expected))
    return ''.join('    if (%s != %s) return 1;\n' % pair for pair in expected)


def compile_and_run(net, run, out, flags=((), ())):
    """The result of the program: a list in the format of the result, as generated code has it."""
    header = open(out + '/net.h').read()
    first = net.nodes[0]
    x = run.values[first.name, run.format(first)]
    result = re.search(r'#define (NET_RESULT_\w+) ', header).group(1)
    last = net.nodes[-1]
    ends = run.format(last) if re.fullmatch(r'NET_RESULT_%s(_n\d+)?' % macro(last.name), result) else 'f32'
    scales = check_scales(net, run, out, result, ends)
    data = struct.pack('<%d%s' % (len(x), LETTERS[run.format(first)]), *x)
    with open(out + '/main.c', 'w') as f:
        f.write(MAIN % {'bytes': ','.join(map(str, data)), 'input': 'NET_INPUT_' + macro(first.name), 'result': result, 'scales': scales})
    objects, more = [], list(flags[0]) + os.environ.get('TINY_FLAGS', '').split()
    for name in ('net', 'net_constants', 'net_kernels', 'main'):
        objects.append('%s/%s.o' % (out, name))
        run_command([os.environ.get('CC', 'gcc')] + WARN + ['-O2', '-I', out, '-I', EXAMPLES, '-I', ROOT + '/examples', '-c', '%s/%s.c' % (out, name), '-o', objects[-1]]
                    + more)
    run_command([os.environ.get('CC', 'gcc'), '-o', out + '/main'] + objects + list(flags[1]) + ['-lm'] + more)
    text = run_command([out + '/main']).stdout
    return list(struct.unpack('<%d%s' % (last.size(), LETTERS[ends]), bytes.fromhex(text))), ends


def read_only_bytes(path):
    """What an object holds in sections that are only read and are no code: flash."""
    total = 0
    for line in run_command(['size', '-A', path]).stdout.splitlines():
        words = line.split()
        if words and words[0].startswith('.rodata'):
            total += int(words[1])
    return total


def check_sizes(net, out, report):
    header = open(out + '/net.h').read()
    planned = sum(int(b) for b in re.findall(r'#define NET_STORED_\w+_BYTES (\d+)', header))
    counted = read_only_bytes(out + '/net_constants.o')
    if counted != planned or ', %d of constants' % planned not in report:
        fail('constants: the linker counts %d bytes, planned are %d; %s' % (counted, planned, report))
    tables = int(re.search(r'(\d+) bytes of constant tables on top of these(?: and of --flash, as their code)?[,\n]', report).group(1))
    if ('limits' in out) != ('on top of these and of --flash' in report):
        fail('%s: tables are not told apart from --flash: %s' % (out, report))
    names = run_command(['nm', '-S', '--size-sort', out + '/net_kernels.o']).stdout
    counted = sum(int(line.split()[1], 16) for line in names.splitlines() if re.search(r' net_(\w+_rows|\w+_table|index)$', line))
    if counted > tables or (counted < tables and 'CC' not in os.environ):    # other compilers drop rows that are known
        fail('tables: the linker counts %d bytes, tl_plan says %d' % (counted, tables))
    for name in ('net', 'net_constants', 'net_kernels'):
        for line in run_command(['nm', '-u', '%s/%s.o' % (out, name)]).stdout.split('\n'):
            if line and not re.match(r'net_|mem(set|cpy)$|_GLOBAL_OFFSET_TABLE_$', line.split()[-1]):
                fail('%s.o needs %s' % (name, line.split()[-1]))


def profiles(weights, others):
    """What ops with weights may be in, op by op or all alike, and what all others may."""
    losses = {'f32': 0.0, 'i8': 0.002, 'i8-channel': 0.001, 'w4a8': 0.003, 'w8a16': 0.0002, 'i16': 0.0001}
    row = lambda op, schemes: 'profile %s %s\n' % (op, ' '.join('%s=%s:1.0' % (x, losses[x]) for x in ['f32'] + schemes if x != 'f32' or op))
    if not isinstance(weights, dict):
        weights = {op: weights for op in ('conv2d', 'depthwise', 'linear')}
    return 'profiles 1\n' + ''.join(row(op, [w]) for op, w in weights.items() if w != 'f32') + ''.join(
        row(op, []) for op, w in weights.items() if w == 'f32') + row('*', [others] if others != 'f32' else [])


ALL = 'loss=1e9,objective=bytes,sensitive,unknown'
CHOICES = [     # name, --precision, --profiles, what is called
    ('i8-channel', ALL + ',any-result,inputs=i8', profiles('i8-channel', 'i8'), ['net_conv2d_i8_channel_forward']),
    ('i8', ALL, profiles('i8', 'i8'), ['net_convert_f32_i8_forward', 'net_convert_i8_f32_forward']),
    ('w8a16', ALL + ',any-result', profiles('w8a16', 'i16'), ['_w8a16_forward']),
    ('f32', ALL, profiles('f32', 'f32'), ['_f32_forward']),
    ('w4a8', ALL + ',any-result,inputs=i8,schemes=i8+w4a8+f32', profiles('w4a8', 'i8'), ['_w4a8_forward']),
    ('mixed', ALL, profiles({'conv2d': 'f32', 'depthwise': 'i8-channel', 'linear': 'w8a16'}, 'i8'), ['net_convert_f32_i8_forward', '_f32_forward']),
]


def interpret(net, schemes, x):
    """The network on an input, which is converted as who calls the program does it."""
    inputs = {}
    for n in net.nodes:
        if n.op != 'input':
            continue
        run = Run.__new__(Run)
        run.net, run.schemes, run.values, run.quants = net, dict(schemes, **{n.name: 'f32'}), {(n.name, 'f32'): x[n.name]}, {}
        inputs[n.name] = run.value(n.name, {'f32': 'f32', 'i8': 'i8', 'i16': 'i16', 'w8a16': 'i16'}[schemes[n.name]])
    return Run(net, schemes, inputs)


CURVES = ('w8a16', ALL + ',any-result', profiles('w8a16', 'i16'), ['net_%s_i16_forward' % op for op in ('sigmoid', 'tanh', 'hardswish', 'softmax')])
BARE = ('bare', ALL + ',any-result,inputs=i8', profiles({}, 'i8'), ['net_add_i8_forward'])
LIMITS = ('limits', ['--ram', '3K', '--flash', '2000', '--precision', 'inputs=i8,sensitive,any-result'], '', [])
SHORT = 'inputs=i8,sensitive,any-result,schemes=f32+i8+i8-channel'
LIMITS_W4 = ('limits_w4a8', ['--ram', '4K', '--flash', '700', '--precision', SHORT + '+w4a8'], '', ['net_conv2d_w4a8_forward'])


def chosen(*names): return [row for row in CHOICES if row[0] in names]


def check_short(plan, folder):
    """Where the network in 8 bits does not fit, w4a8 is what does; without it the nearest limit is named. CMSIS-NN has it not."""
    for how, kernels, sentence in ((['--ram', '4K', '--flash', '700', '--precision', SHORT], 'own', 'no choice was found within all limits; the least of '),
                                   (['--precision', 'loss=1e9,schemes=w4a8'], 'cmsis-nn', 'schemes: none is left of those that its op can have')):
        text = run_command([plan, folder + '/net.tlg', '--inference'] + how + ['--weights', folder + '/net.safetensors', '--ranges',
                            folder + '/net.ranges', '--kernels', kernels, '--c-code', 'net', '-o', folder], 2).stderr
        if sentence not in text:
            fail('%s, not %s' % (text, sentence))


def check_kept(plan, folder):
    """What a model has in 8 bits stays so within limits, though its table of losses likes f32 better; without schemes of 8 bits it cannot."""
    how = ['--ram', '64K', '--flash', '64K', '--precision', 'inputs=i8,any-result,schemes=f32+w8a16']
    for more, wanted in (('+i8+i8-channel', {'i8', 'i8-channel'}), ('', {'f32', 'w8a16'})):
        write_code(plan, folder, how[:-1] + [how[-1] + more], folder + '/kept')
        nodes = json.load(open(folder + '/kept/plan.json'))['precision']['nodes']
        found = {n['scheme'] for n in nodes if n['op'] != 'input'}
        if not found <= wanted:
            fail('%s: schemes %s, not %s' % (folder, found, wanted))


def check_net(plan, net, folder, choices, cmsis, stem=None):
    """stem: of the files that the network was read from, which are used as they are."""
    x = {n.name: [f32(net.random.uniform(-2, 2)) for _ in range(n.size())] for n in net.nodes if n.op == 'input'}
    if stem:
        for end in ('.tlg', '.safetensors', '.ranges'):
            shutil.copy(stem + end, folder + '/net' + end)
    else:
        if not any(n.fixed for n in net.nodes):
            measure(net, x)
        write_model(net, folder)
    regions = 0
    for name, words, profile, calls in choices:
        out = '%s/%s' % (folder, name)
        os.makedirs(out, exist_ok=True)
        with open(out + '/profiles', 'w') as f:
            f.write(profile)
        how = words if isinstance(words, list) else ['--precision', words, '--profiles', out + '/profiles']
        report = write_code(plan, folder, how, out)
        run = interpret(net, schemes_of(net, out), x)
        for text in calls:
            if text not in open(out + '/net.c').read():
                fail('%s: no %s' % (out, text))
        grown = len(run.grown)
        for c in run.grown:
            if 'node %s: ' % c[0] not in report.stderr:
                fail('%s: nothing is said of the bias of %s' % (out, c))
        if not run.grown and report.stderr:
            fail('%s: %s' % (out, report.stderr))
        got, ends = compile_and_run(net, run, out)
        expected = run.value(net.nodes[-1].name, ends)
        if got != expected:
            wrong = [i for i in range(len(got)) if got[i] != expected[i]]
            fail('%s: %d of %d results differ, the first at %d: %r, not %r' % (out, len(wrong), len(got), wrong[0], got[wrong[0]], expected[wrong[0]]))
        if not os.environ.get('TINY_FLAGS'):
            check_sizes(net, out, report.stdout)
        if len(set(expected)) < min(3, len(expected)):
            fail('%s: the results are all the same' % out)
        if cmsis and name in ('i8-channel', 'w8a16', 'bare'):
            check_cmsis(plan, net, run, folder, how, out + '_cmsis', expected, cmsis)
        rows = write_code(plan, folder, how + ['--rows'], out + '_rows')
        regions += 'net_operand' in open(out + '_rows/net.h').read()
        if 'limits' not in out:
            if schemes_of(net, out + '_rows') != run.schemes:
                fail('%s: other schemes with --rows' % out)
        else:
            run = interpret(net, schemes_of(net, out + '_rows'), x)     # RAM is that of line buffers
        got, ends = compile_and_run(net, run, out + '_rows')
        if got != run.value(net.nodes[-1].name, ends):
            fail('%s: other results with --rows' % out)
        if not os.environ.get('TINY_FLAGS'):
            check_sizes(net, out + '_rows', rows.stdout)
        arenas = [int(re.search(r'#define NET_BANK_0_BYTES (\d+)', open(o + '/net.h').read()).group(1)) for o in (out, out + '_rows')]
        print('%-22s %s: %d results, arena %d bytes, by rows %d%s' % (os.path.basename(folder), name, len(got), arenas[0], arenas[1],
              ', %d scales grown' % grown if grown else ''))
    if not regions and len(choices) > 2:
        fail('%s: no choice has regions of rows' % folder)


# -- what is refused --

def refuse(plan, folder, sentence, change=None, model=None, damage=None, how=None, more=('--kernels', 'own')):
    """A small network with one thing wrong: the sentence names it, and nothing is written."""
    net = Net(9)
    net.input('x', (5, 4, 2))
    net.add('a', 'conv2d', ['x'], channels=3, kernel=(3, 3), pad=(1, 1, 1, 1), act='relu')
    net.add('b', 'linear', ['a'], channels=4)
    if change:
        change(net)
    write_model(net, folder)
    if model is not None:
        write_ranges(net, folder + '/net.ranges', model)
    if damage:
        edit(folder + '/' + damage[0], damage[1], damage[2])
    with open(folder + '/profiles', 'w') as f:
        f.write(profiles('i8-channel', 'i8'))
    out = folder + '/out'
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    command = [plan, folder + '/net.tlg', '--inference', '--c-code', 'net', '-o', out, '--weights', folder + '/net.safetensors',
               '--ranges', folder + '/net.ranges'] + list(more) + (how or ['--precision', ALL + ',any-result', '--profiles', folder + '/profiles'])
    if how and 'balanced,training' in how:
        command.remove('--inference')
    text = run_command(command, 1).stderr
    if sentence not in text or text.count('\n') != 1:
        fail('%r, not %r' % (text, sentence))
    if os.listdir(out):
        fail('%s: %s were written' % (sentence, os.listdir(out)))


def edit(path, old, new):
    text = open(path, 'rb').read()
    if old.encode() not in text:
        fail('%s: no %s' % (path, old))
    with open(path, 'wb') as f:
        f.write(text.replace(old.encode(), new.encode()))


def check_refusals(plan, folder):
    os.makedirs(folder, exist_ok=True)
    with open(folder + '/wide', 'w') as f:
        f.write(profiles('w8a16', 'i16'))

    def put(name, **values):
        def change(net):
            for key, value in values.items():
                setattr(net.find(name), key, value)
        return change

    def quantised(net, **values):
        for n in net.nodes:
            n.fixed = (0.02, 3)
        for name in 'ab':
            n = net.find(name)
            n.scale, n.weights, n.bias = [0.01] * n.shape[2], [1] * len(n.weights), [5] * len(n.bias)
        for key, value in values.items():
            setattr(net.find('a'), key, value)
    refuse(plan, folder, 'net.ranges: ranges: model: is that of another graph; this one\'s is ', model=1)
    refuse(plan, folder, 'net.safetensors: node a: a number of .weights is not finite', put('a', weights=[float('nan')] * 54))
    refuse(plan, folder, 'net.safetensors: node a: a number of .bias is not finite', put('a', bias=[float('inf')] * 3))
    refuse(plan, folder, 'net.safetensors: node b: a number of .bias is not finite', put('b', bias=[float('nan')] * 4))
    refuse(plan, folder, 'net.ranges: node a: kernel, stride and pad make another height', put('a', stride=(2, 1)))
    refuse(plan, folder, 'net.ranges: node a: kernel, stride and pad make another width', put('a', stride=(1, 2)))
    refuse(plan, folder, 'net.ranges: node a: pad: is as large as what its kernel reaches', put('a', pad=(1, 3, 1, 1)))
    refuse(plan, folder, 'net.safetensors: node a: its weights are in 8 bits, and .scale is not F32 of one number',
           lambda net: quantised(net, scale=[0.01, 0.01]))
    refuse(plan, folder, 'net.safetensors: node a: a number of .scale is not finite and > 0', lambda net: quantised(net, scale=[0.01, 0.0, 0.01]))
    refuse(plan, folder, 'net.safetensors: node a: a bias of the model leaves no room for a sum in 32 bits', lambda net: quantised(net, bias=[0, 2 ** 31 - 1, 0]))
    refuse(plan, folder, '--weights: is for --inference, not for training', how=['--precision', 'balanced,training'], more=())
    refuse(plan, folder, "--kernels none: must be own or cmsis-nn", more=('--kernels', 'none'))
    refuse(plan, folder, '--slots: the functions of --kernels overwrite no rows', more=('--kernels', 'own', '--rows', '--slots', 'depthwise'), how=[])

    def far(net):
        net.add('s', 'sigmoid', ['b'])
        net.find('b').low, net.find('b').high = -1e6, 1e6
    refuse(plan, folder, '--kernels: node s: its scales are too far apart for integers', far, how=['--precision', ALL + ',any-result,schemes=i16+w8a16+f32', '--profiles', folder + '/wide'])
    # files that are not what they should be
    for file, old, new, sentence in (
            ('net.safetensors', '"a.weights"', '"a.weightz"', 'net.safetensors: node a: there are no .weights'),
            ('net.safetensors', '"b.bias"', '"b.bios"', 'net.safetensors: node b: there is no .bias'),
            ('net.safetensors', '[3, 3, 3, 2]', '[3, 3, 2, 3]', 'net.safetensors: node a: .weights must have the shape 3x3x3x2'),
            ('net.safetensors', '"F32"', '"F33"', 'net.safetensors: safetensors: byte '),
            ('net.ranges', 'tensor a shape=5x4x3', 'tensor a shape=5x4x4', 'net.ranges: tensor a: has a shape of 80 elements, in the graph 60 bytes of i8'),
            ('net.ranges', 'tensor b ', 'tensor c ', 'net.ranges: ranges: line 5: the graph has no node c'),
            ('net.ranges', 'node a ', 'node c ', 'net.ranges: ranges: line 6: the graph has no node c'),
            ('net.ranges', 'act=relu', 'act=gelu', 'net.ranges: ranges: line 6: act: must be none, relu or relu6'),
            ('net.tlg', 'stored=216:f32,12:f32', 'stored=216:f32,16:f32', 'net.safetensors: node a: stored= must be its weights and its biases, 216:f32,12:f32'),
            ('net.tlg', ' conv2d ', ' konv2d ', 'net.ranges: ranges: model: is that of another graph')):
        refuse(plan, folder, sentence, damage=(file, old, new))


def main():
    plan = sys.argv[1] if len(sys.argv) > 1 else ROOT + '/build/tl_plan'
    keep = os.environ.get('TINY_KEEP')
    folder = keep or tempfile.mkdtemp()
    try:
        os.makedirs(folder + '/cmsis', exist_ok=True)
        cmsis = build_cmsis(folder + '/cmsis') if 'CMSIS_NN' in os.environ else None
        nets = [('keyword', keyword_net(width=16, blocks=2), chosen('i8-channel', 'i8', 'w4a8')), ('residual', residual_net(2), CHOICES), ('branches', branch_net(3), CHOICES),
                ('floats', float_net(4), CHOICES), ('curves', curve_net(7), [CURVES] + chosen('i8-channel', 'f32')),
                ('quantised', quantised_net(5), chosen('i8-channel', 'w4a8')), ('long', long_net(6), chosen('w4a8')),
                ('bare', bare_net(7), [BARE] + chosen('i8', 'f32'))]
        for name, net, choices in nets:
            os.makedirs('%s/%s' % (folder, name), exist_ok=True)
            check_net(plan, net, '%s/%s' % (folder, name), choices, cmsis)
        for name in ('kws', 'kws_int8', 'exact_int8', 'little'):
            os.makedirs('%s/%s' % (folder, name), exist_ok=True)
            stem = '%s/tests/data/tiny/%s' % (ROOT, name)
            choices = chosen('i8-channel', 'w4a8') if 'int8' in name else chosen('i8-channel', 'i8', 'w8a16', 'f32', 'w4a8')
            check_net(plan, read_net(stem), '%s/%s' % (folder, name), choices + [LIMITS, LIMITS_W4] * (name == 'kws'), cmsis, stem)
        check_short(plan, folder + '/kws')
        check_kept(plan, folder + '/kws_int8')
        check_refusals(plan, folder + '/refused')
    finally:
        if not keep:
            shutil.rmtree(folder)
    print('programs of tl_plan: the bits of the interpreter')


if __name__ == '__main__':
    main()
