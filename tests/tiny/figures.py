#!/usr/bin/env python3
"""The tables of FIGURES.md that compare with TFLM and ONNX Runtime: check.py --figures."""
import contextlib, io, os, re, sys, tempfile

import support
import export_onnx
import import_onnx
import import_tflite
import interpret
import keywords
import lite_nets
import nets
import numpy as np
import onnx
import tflm
from support import TL_PACK, plan
from test_onnx import run_onnx

NAMES = {'ds_cnn': 'DS-CNN, 49 x 10', 'mobilenet': 'MobileNetV1-0.25, 96 x 96', 'resnet8': 'ResNet-8, 32 x 32', 'autoencoder': 'autoencoder, 640'}
HOW = 'loss=1e9,objective=bytes,schemes=f32+i8+i8-channel,sensitive,any-result,unknown,inputs=i8'


def with_stream(path):
    """Let the input of a graph arrive by rows."""
    with open(path) as file: lines = [line + (' stream' if ' input ' in line and ' rows=' in line else '') for line in file.read().splitlines()]
    with open(path, 'w') as file: file.write('\n'.join(lines) + '\n')


def arena_of(text): return int(re.search(r'^arena +(\d+)', text, re.M).group(1))
def is_least(text): return 'no arena is smaller' in text


def measure(folder, make):
    """Bytes: TFLM's head, its head with our plan, ours, ours with rows, with rows of the input, too."""
    path, planned, prefix = (os.path.join(folder, name) for name in ('net.tflite', 'plan.tflite', 'net'))
    with open(path, 'wb') as file: file.write(make().write())
    with contextlib.redirect_stdout(io.StringIO()):
        if import_tflite.main([path, '-o', prefix]) or import_tflite.main([path, '--tflm-plan', planned, '--tl-pack', TL_PACK]): sys.exit(1)
    whole = plan(prefix + '.tlg', '--inputs-die', '--align', '16', '--precision', HOW, '--budget', '100%')
    if not is_least(whole): sys.exit('%s: an arena may be smaller' % path)
    made = [tflm.head_of(path), tflm.head_of(planned), arena_of(whole)]
    for _ in range(2):
        made.append(arena_of(plan(prefix + '.tlg', '--inputs-die', '--align', '16', '--precision', HOW, '--rows')))
        with_stream(prefix + '.tlg')
    return made


def compare_onnx(folder, make, count=50):
    """Of a float model that tl_plan quantised and export_onnx.py wrote: how far the outputs of ONNX Runtime are from ours,
    in steps, and in how many samples the largest output is the same; and the largest of the float model."""
    path, data, prefix, out = (os.path.join(folder, name) for name in ('net.onnx', 'data.npz', 'net', 'out.onnx'))
    model = make()
    nets.save(model, path)
    np.savez(data, **nets.samples_of(model, 32, seed=5))
    with contextlib.redirect_stdout(io.StringIO()):
        code = import_onnx.main([path, '-o', prefix, '--calibrate', data])
        plan(prefix + '.tlg', '--inputs-die', '--precision', HOW, '--json', prefix + '.json', '--budget', '100%')
        code = code or export_onnx.main([prefix, '--plan', prefix + '.json', '-o', out]) or import_onnx.main([out, '-o', prefix + '_again'])
    if code: sys.exit(code)
    nodes, samples = interpret.read(prefix + '_again'), nets.samples_of(model, count)
    (name, arrays), last, made = next(iter(samples.items())), support.output_of(nodes), []
    for k in range(count):
        x = support.stored(arrays[k:k + 1])
        q = np.clip(np.rint(x / nodes[0].scale) + nodes[0].zero, -128, 127).astype(np.int8)
        y = interpret.run(nodes, {nodes[0].name: q}, interpret.compute_int)[last.name].ravel()
        made.append((y.astype(np.float64) - last.zero) * last.scale)
    ours = np.array(made)
    theirs, floats = (np.array([run_onnx(m, {name: arrays[k:k + 1]})[0].ravel() for k in range(count)]) for m in (onnx.load(out), model))
    steps = np.abs(ours - theirs) / last.scale
    top = [y.argmax(1) for y in (ours, theirs, floats)]
    return np.rint(steps).astype(int), (top[0] == top[1]).sum(), (top[0] == top[2]).sum(), (top[1] == top[2]).sum()


def print_keywords(folder):
    """Accuracy of the trained keyword network on its test clips, and instructions of w4a8 beside i8-channel."""
    why = keywords.prepare()
    if why: return print('\nkeyword network: %s' % why)
    features, labels = keywords.read_test()
    clips, floats = keywords.quantised(features), keywords.run_onnx(keywords.MODEL, features)
    def cells(scores): return '%.2f %% | %.2f %%' % (100 * np.mean(scores.argmax(1) == labels), 100 * np.mean(scores.argmax(1) == floats.argmax(1)))
    print('\n| keyword network, %d clips | heard right | as in floats | arena | constants |\n|---|---|---|---|---|' % len(labels))
    print('| ONNX Runtime, floats | %s | | |' % cells(floats))
    print('| `quantize_static`, QDQ, by channel | %s | | |' % cells(keywords.run_onnx(keywords.quantize_onnx(folder), features)))
    for choice in keywords.CHOICES:
        for more in (), ('--rows',):
            code = os.path.join(folder, '-'.join([choice, *more]))
            sizes = re.search(r'(\d+) bytes of RAM.* (\d+) of constants', keywords.write_code(code, choice, *more)).groups()
            print('| %s | %s | %s | %s |' % (' '.join(['`%s`' % choice, *more]), cells(keywords.run_host(code, clips)), *sizes))
    print('\n| a clip on a Cortex-M4 | instructions | ratio |\n|---|---|---|')
    for name, more, flags in keywords.FORMS[1:]:
        counts = []
        for choice in 'i8-channel', 'w4a8':
            code = os.path.join(folder, '-'.join(['device', choice, *more]))
            keywords.write_code(code, choice, *more)
            counts.append(keywords.run_device(code, clips[:keywords.CLIPS], flags)[1])
            print('| %s, `%s` | %.0f | %.3f |' % (name, choice, counts[-1], counts[-1] / counts[0]))


def main():
    print('| int8, bytes of the arena | TFLM | with `--tflm-plan` | `tl_plan` | `--rows` | and the input by rows |\n|---|---|---|---|---|---|')
    with tempfile.TemporaryDirectory() as folder:
        for name, make in lite_nets.NETS.items():
            row = measure(folder, make)
            cells = ['%d' % x if k < 2 or x >= row[0] else '%d (-%.0f %%)' % (x, 100 - 100 * x / row[0]) for k, x in enumerate(row)]
            print('| %s | %s |' % (NAMES[name], ' | '.join(cells)))
        print('\n| outputs of 50 samples | equal | within a step | most steps | same largest | as in floats | ONNX Runtime as in floats |\n|---|---|---|---|---|---|---|')
        for name, make in nets.NETS.items():
            steps, same, ours, theirs = compare_onnx(folder, make)
            print('| %s | %.1f %% | %.1f %% | %d | %d | %d | %d |' % (NAMES[name], 100 * (steps == 0).mean(), 100 * (steps <= 1).mean(), steps.max(),
                                                            same, ours, theirs))
        print_keywords(folder)
    return 0
