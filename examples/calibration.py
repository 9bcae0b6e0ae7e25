"""--calibrate of import_onnx.py and import_tflite.py: samples of an .npz, and the ranges of tensors over all of them.

The .npz holds an array for each input, by name, samples along axis 0; what numpy calls arr_0 is the one input. Arrays that
cannot be the samples are refused; what is unlikely is used, and told in a sentence. Needs the PyPI package numpy.
"""
import numpy as np
from tiny_model import Refused, WrongFile, by_x

MOST_TOLD = 4       # names in a sentence


def in_a_line(error): return ' '.join((str(error) or type(error).__name__).split())[:300]


def join_some(words):
    words = list(words)
    return ', '.join(words[:MOST_TOLD]) + (' and %d more' % (len(words) - MOST_TOLD) if len(words) > MOST_TOLD else '')


def read_arrays(path):
    try:
        with open(path, 'rb') as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray): raise ValueError('is one array (.npy): numpy.savez writes an .npz')
            return {name: found[name] for name in found.files}
    except OSError: raise
    except Exception as error: raise WrongFile(path, 'is no .npz: %s' % in_a_line(error))      # of numpy and zip, whatever they raise


def check_names(path, inputs, arrays):
    """The arrays of the inputs, and a sentence for others."""
    if list(arrays) == ['arr_0'] and len(inputs) == 1: arrays = dict(zip(inputs, arrays.values()))
    missing, others = [n for n in inputs if n not in arrays], [n for n in arrays if n not in inputs]
    if missing:
        raise WrongFile(path, 'has no array %s, as the model calls its input: it has %s' % (join_some(missing), join_some(arrays) or 'none'))
    notes = ['%s: %s: no input of the model, and not read' % (path, join_some(others))] if others else []
    return {name: arrays[name] for name in inputs}, notes


def check_array(path, name, array, sizes):
    """Samples as floats."""
    if array.dtype.kind not in 'fiu': raise WrongFile(path, '%s is of %s, and must be numbers' % (name, array.dtype))
    if array.ndim == 0 or list(array.shape[1:]) != list(sizes):
        raise WrongFile(path, '%s is %s, and must be samples of %s: (samples)x%s' % (name, by_x(array.shape), by_x(sizes), by_x(sizes)))
    with np.errstate(all='ignore'): floats = array.astype(np.float32)
    if not np.isfinite(floats).all(): raise WrongFile(path, '%s holds a NaN or an infinity' % name)
    return floats


def read_samples(path, inputs):
    """({input: samples}, sentences); inputs: {name: sizes of a sample}."""
    arrays, notes = check_names(path, inputs, read_arrays(path))
    samples = {name: check_array(path, name, arrays[name], sizes) for name, sizes in inputs.items()}
    counts = {len(array) for array in samples.values()}
    if len(counts) != 1 or counts == {0}:
        raise WrongFile(path, 'its arrays have no samples, or different numbers of them')
    for name, array in arrays.items():
        if array.dtype.kind in 'iu':
            notes.append('%s: %s holds integers (%s) from %d to %d, where the model reads floats: are they what it was trained on?' % (
                path, name, array.dtype, array.min(), array.max()))
    return samples, notes


def observe(node, array):
    """Widen the range of a node to that of an array."""
    if not array.size or not np.isfinite(array).all():
        raise Refused('%s %s: makes a NaN or an infinity' % (node.op, node.name))
    low, high = float(array.min()), float(array.max())
    node.low = low if node.low is None else min(node.low, low)
    node.high = high if node.high is None else max(node.high, high)


def finish_ranges(nodes, path):
    """Ranges of what the model does not have, and sentences for those that say nothing."""
    for node in nodes:
        if node.source is not None: continue
        # zeros around what a mean reads
        node.low, node.high = min(node.inputs[0].low, 0.0), max(node.inputs[0].high, 0.0)
    flat = ['%s (%.9g)' % (node.name, node.low) for node in nodes if node.low == node.high]
    return ['%s: one number in all samples, so no range: %s' % (path, join_some(flat))] if flat else []
