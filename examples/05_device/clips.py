#!/usr/bin/env python3
"""Take a clip of each word for a program on a board: the first of each label, as the integers that a network reads.

    clips.py NAME TEST.npz -o CLIPS

Reads NAME.tlg, .safetensors and .ranges, as import_onnx.py wrote them, and features and labels of TEST.npz, as
train_keywords.py did. CLIPS are bytes: of each clip its label, and its features as int8, by their range in NAME.ranges. Needs
the PyPI packages onnx and numpy.
"""
import argparse, os, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import export_onnx
from tiny_model import read_files, run, write_file
import numpy as np


def quantise(node, features):
    """[clips][features] in int8, for a network that begins with node."""
    scale = export_onnx.scale_range(node.low, node.high, np.int8)
    return np.clip(np.rint(features / np.float32(scale.scale)) + scale.zero, -128, 127).astype(np.int8).reshape(len(features), -1)


def pack(labels, clips): return np.concatenate([np.asarray(labels, np.int8)[:, None], clips], 1).tobytes()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0], epilog=__doc__.split('\n\n', 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', metavar='NAME')
    parser.add_argument('test', metavar='TEST.npz')
    parser.add_argument('-o', metavar='CLIPS', dest='out', required=True)
    options = parser.parse_args(arguments)

    def work():
        with np.load(options.test) as file: features, labels = file['features'], file['labels']
        first = [int(np.argmax(labels == label)) for label in range(labels.max() + 1)]
        write_file(options.out, pack(labels[first], quantise(read_files(options.name)[0], features[first])))
    return run('clips', options.test, work)


if __name__ == '__main__':
    sys.exit(main())
