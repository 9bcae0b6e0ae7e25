"""Where things are, and what all tests of this folder do: import a model, run it elsewhere, compare."""
import contextlib, io, os, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..', '..')
sys.dont_write_bytecode = True
sys.path[:0] = [HERE, os.path.join(ROOT, 'examples')]
BUILD = os.path.join(ROOT, os.environ.get('B', 'build'))
TL_PLAN, TL_PACK = os.path.join(BUILD, 'tl_plan'), os.path.join(BUILD, 'tl_pack')
SUFFIXES = '.tlg', '.safetensors', '.ranges'

import interpret
import numpy as np


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def path(self, name): return os.path.join(self.folder, name)

    def run_importer(self, main, *arguments):
        """The exit code and what stderr got, a line for each refusal; of a refusal no file."""
        errors = io.StringIO()
        prefix = self.path('out')
        for suffix in SUFFIXES:
            if os.path.exists(prefix + suffix): os.remove(prefix + suffix)
        with contextlib.redirect_stderr(errors): code = main([*arguments, '-o', prefix])
        self.assertEqual(errors.getvalue().count('\n'), code, errors.getvalue())
        self.assertEqual([os.path.exists(prefix + s) for s in SUFFIXES], [code == 0] * 3)
        return code, errors.getvalue()

    def imported(self, main, *arguments):
        """The nodes of a model as its three files say them."""
        code, text = self.run_importer(main, *arguments)
        self.assertEqual((code, text), (0, ''))
        return interpret.read(self.path('out'))

    def assert_close(self, got, wanted, ratio, text=''):
        """Within a share of the largest number."""
        got, wanted = np.asarray(got, np.float64).ravel(), np.asarray(wanted, np.float64).ravel()
        self.assertEqual(got.size, wanted.size)
        self.assertLessEqual(np.abs(got - wanted).max(), ratio * max(np.abs(wanted).max(), 1e-30), text)


def output_of(nodes): return next(node for node in nodes if node.keep)


def stored(array):
    """A sample of ONNX, channels first, as the files have it."""
    return array[0].transpose(1, 2, 0) if array.ndim == 4 else array[0]


def plan(path, *options):
    done = subprocess.run([TL_PLAN, path, '--inference', *options], capture_output=True, text=True)
    if done.returncode: raise AssertionError(done.stderr)
    return done.stdout
