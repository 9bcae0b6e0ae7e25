#!/usr/bin/env python3
"""Take a clip of each word for a program on a board: the first of each label, as the integers that a network reads.

    clips.py NAME TEST.npz -o CLIPS

Reads NAME.tlg, .safetensors and .ranges, as import_onnx.py wrote them, and features and labels of TEST.npz, as
train_keywords.py did. CLIPS are bytes: of each clip its label, and its features as int8, by their range in NAME.ranges. Needs
the PyPI packages onnx and numpy.
"""
import argparse, os, sys, zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import export_onnx
from tiny_model import WrongFile, by_x, read_files, refuse, run, write_file
import numpy as np


def quantise(node, features):
    """[clips][features] in int8, for a network that begins with node."""
    if node.low is None: refuse(node, 'its range is not known (import_onnx.py --calibrate)')
    scale = export_onnx.scale_range(node.low, node.high, np.int8)
    return np.clip(np.rint(features / np.float32(scale.scale)) + scale.zero, -128, 127).astype(np.int8).reshape(len(features), -1)


def pack(labels, clips):
    """Of each clip its label and its features."""
    return np.concatenate([np.asarray(labels, np.int8)[:, None], clips], 1).tobytes()


def read_test(path):
    """Features and labels of each label's first clip."""
    try:
        with np.load(path) as file: features, labels = file['features'], file['labels']
        first = [int(np.flatnonzero(labels == label)[0]) for label in range(max(labels) + 1)]
        return features[first], labels[first]
    except (KeyError, IndexError, ValueError, TypeError, zipfile.BadZipFile):
        raise WrongFile(path, 'is no .npz with features and labels 0, 1, and so on, a clip of each at least') from None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0], epilog=__doc__.split('\n\n', 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', metavar='NAME')
    parser.add_argument('test', metavar='TEST.npz')
    parser.add_argument('-o', metavar='CLIPS', dest='out', required=True)
    options = parser.parse_args(arguments)

    def work():
        features, labels = read_test(options.test)
        node = read_files(options.name)[0]
        if features[0].size != node.elements:
            raise WrongFile(options.test, 'features are %s, and the network reads %s' % (by_x(features[0].shape), by_x(node.shape)))
        write_file(options.out, pack(labels, quantise(node, features)))
    return run('clips', options.name, work)


if __name__ == '__main__':
    sys.exit(main())
