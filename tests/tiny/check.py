#!/usr/bin/env python3
"""check.py [--figures] [CLASS.TEST...]   what needs packages of PyPI (make tiny-check): both importers beside ONNX
Runtime and TFLM. --figures prints the tables of FIGURES.md instead."""
import os, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import support      # paths

if __name__ == '__main__':
    if '--figures' in sys.argv:
        import figures
        sys.exit(figures.main())
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    loader = unittest.defaultTestLoader
    names = [n for n in sys.argv[1:] if not n.startswith('-')]
    suite = loader.loadTestsFromNames(names) if names else loader.discover(HERE)
    sys.exit(not unittest.TextTestRunner(buffer=True).run(suite).wasSuccessful())
