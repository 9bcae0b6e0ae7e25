#!/usr/bin/env python3
"""make_samples.py: write tests/data/tiny again. Needs what make tiny-check installs."""
import os, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(HERE, '..', '..', 'examples')]
import import_onnx
import import_tflite
import lite_nets
import nets
import numpy as np

DATA = os.path.join(HERE, '..', 'data', 'tiny')


def import_net(model, name):
    with tempfile.TemporaryDirectory() as folder:
        path = nets.save(model, os.path.join(folder, 'net.onnx'))
        np.savez(os.path.join(folder, 'data.npz'), **nets.samples_of(model, 16))
        if import_onnx.main([path, '-o', os.path.join(DATA, name), '--calibrate', os.path.join(folder, 'data.npz')]):
            sys.exit(1)


def import_lite(net, name):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'net.tflite')
        with open(path, 'wb') as file: file.write(net.write())
        if import_tflite.main([path, '-o', os.path.join(DATA, name)]): sys.exit(1)


if __name__ == '__main__':
    os.makedirs(DATA, exist_ok=True)
    import_net(nets.ds_cnn(8, 1), 'kws')
    import_net(nets.little(), 'little')
    import_lite(lite_nets.kws_floats(), 'kws_int8')
    import_lite(lite_nets.exact(), 'exact_int8')
