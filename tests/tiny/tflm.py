#!/usr/bin/env python3
"""TFLM's interpreter on a .tflite. As a program: tflm.py MODEL.tflite prints the head of its arena."""
import re, subprocess, sys

import numpy as np
from tflite_micro.python.tflite_micro import runtime

ARENA = 4 << 20


def interpreter_of(data): return runtime.Interpreter.from_bytes(data, arena_size=ARENA)


def run(data, samples):
    """The output for each sample of the one input, in its own type."""
    interpreter, made = interpreter_of(data), []
    for sample in samples:
        interpreter.set_input(sample, 0)
        interpreter.invoke()
        made.append(interpreter.get_output(0).copy())
    return made


def random_samples(data, count, seed=1):
    details = interpreter_of(data).get_input_details(0)
    random = np.random.default_rng(seed)
    if details['dtype'] == np.float32: return random.uniform(-2, 2, [count, *details['shape']]).astype(np.float32)
    return random.integers(-128, 128, [count, *details['shape']]).astype(details['dtype'])


def head_of(path):
    """Bytes of the head of TFLM's arena: it prints them."""
    text = subprocess.run([sys.executable, __file__, path], capture_output=True, text=True, check=True)
    return int(re.search(r'Arena allocation head (\d+) bytes', text.stdout + text.stderr).group(1))


if __name__ == '__main__':
    with open(sys.argv[1], 'rb') as file: MODEL = file.read()
    INTERPRETER = interpreter_of(MODEL)
    INTERPRETER.set_input(random_samples(MODEL, 1)[0], 0)
    INTERPRETER.invoke()
    INTERPRETER.print_allocations()
