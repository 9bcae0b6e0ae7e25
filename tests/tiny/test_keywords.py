"""The trained keyword network in int8: accuracy beside ONNX Runtime's, bits on the host, on a Cortex-M4, and of CMSIS-NN."""
import os, re, shutil, subprocess, sys, unittest

import export_onnx
import interpret
import keywords
import numpy as np
from keywords import NET, quantised, read_test, run_device, run_host, write_code
from support import ROOT, TL_PLAN, Case


class Keywords(Case):
    @classmethod
    def setUpClass(cls):
        why = keywords.prepare()
        if why: raise unittest.SkipTest(why)
        cls.features, cls.labels = read_test()

    def code(self, choice, *more):
        folder = self.path('-'.join([choice, *(word.strip('-') for word in more)]))
        return folder, write_code(folder, choice, *more)

    def percent(self, scores): return 100 * np.mean(scores.argmax(1) == self.labels)

    def test_accuracy_is_that_of_quantize_static(self):
        """Within 0.2 points on all clips, with whole tensors and with rows the same bits."""
        self.assertGreaterEqual(len(self.labels), 5000)
        self.assertEqual(set(self.labels), set(range(12)))
        clips = quantised(self.features)
        floats = self.percent(keywords.run_onnx(keywords.MODEL, self.features))
        theirs = self.percent(keywords.run_onnx(keywords.quantize_onnx(self.folder), self.features))
        self.assertGreater(floats, 90)
        for choice in ('i8-channel', 'limits'):
            whole = run_host(self.code(choice)[0], clips)
            rows = run_host(self.code(choice, '--rows')[0], clips)
            for scores in whole, rows: self.assertGreaterEqual(self.percent(scores), theirs - 0.2, choice)
            if choice == 'i8-channel': np.testing.assert_array_equal(rows, whole)     # limits choose anew with rows

    def test_w4a8_fits_where_8_bits_do_not(self):
        """20 KiB of constants: within some points of floats, fewer where it is chosen for some nodes; with rows the same bits."""
        clips = quantised(self.features)
        floats = self.percent(keywords.run_onnx(keywords.MODEL, self.features))
        for choice, points in ('w4a8', 3), ('limits, 20K', 1.5):
            folder, text = self.code(choice)
            self.assertLessEqual(int(re.search(r' (\d+) of constants', text).group(1)), 20 << 10)
            with open(folder + '/net.c') as file: self.assertIn('_w4a8_forward', file.read())
            whole = run_host(folder, clips)
            self.assertGreaterEqual(self.percent(whole), floats - points, choice)
            if choice == 'w4a8': np.testing.assert_array_equal(run_host(self.code(choice, '--rows')[0], clips), whole)

    def test_scores_are_near_those_in_floats(self):
        """A few steps of the scale of the scores, on all clips."""
        made, last = run_host(self.code('i8-channel')[0], quantised(self.features)), interpret.read(NET)[-1]
        scale = export_onnx.scale_range(last.low, last.high, np.int8)
        floats = np.clip(keywords.run_onnx(keywords.MODEL, self.features), last.low, last.high)
        self.assertLess(np.mean(np.abs((made.astype(np.float64) - scale.zero) * scale.scale - floats)), 4 * scale.scale)

    def test_device(self):
        """A Cortex-M4 makes the bits of the host, in at most 1 % more instructions than calls by hand."""
        if not shutil.which('arm-none-eabi-gcc') or not shutil.which('qemu-system-arm'): self.skipTest('no arm-none-eabi-gcc, qemu-system-arm (make deps)')
        clips = quantised(self.features[:keywords.CLIPS])
        folder, _ = self.code('i8-channel')
        wanted = run_host(folder, clips)
        self.assertGreater(len(np.unique(wanted, axis=0)), 1)
        counts = {}
        for name, more, flags in keywords.FORMS:
            made, counts[name] = run_device(self.code('i8-channel', *more)[0], clips, flags)
            np.testing.assert_array_equal(made, wanted, name)
        self.assertLessEqual(counts['whole tensors'], 1.01 * counts['by hand'])
        folder, _ = self.code('w4a8')
        made, count = run_device(folder, clips)
        np.testing.assert_array_equal(made, run_host(folder, clips))
        self.assertLessEqual(count, 1.35 * counts['whole tensors'])

    def test_kept(self):
        """What make run-device runs is as this training makes it: the same graph, and as many clips are heard; not the same bits."""
        for suffix in '.tlg', '.ranges':
            kept, made = ([re.sub('(low|high)=[^ ]*', '', line) for line in open(net + suffix)] for net in (keywords.KEPT, NET))
            self.assertEqual(kept, made, suffix)
        folder = self.path('kept')
        keywords.write_code(folder, 'i8-channel', net=keywords.KEPT)
        heard = self.percent(run_host(folder, quantised(self.features, keywords.KEPT)))
        self.assertLess(abs(heard - self.percent(run_host(self.code('i8-channel')[0], quantised(self.features)))), 1)
        clips = np.fromfile(keywords.KEPT + '.clips', np.int8).reshape(12, -1)
        np.testing.assert_array_equal(clips[:, 0], np.arange(12))
        self.assertEqual(keywords.device_clips.main([NET, keywords.TEST, '-o', self.path('clips')]), 0)
        self.assertEqual(os.path.getsize(self.path('clips')), clips.size)
        self.assertGreaterEqual(np.sum(run_host(folder, clips[:, 1:]).argmax(1) == clips[:, 0]), 10)
        with np.load(keywords.TEST) as file: words = ', '.join('"%s"' % word for word in file['words'])
        with open(os.path.join(keywords.DEVICE, 'main.c')) as file: self.assertIn('{ %s }' % words, file.read())

    def test_lines_of_the_readme(self):
        """From model.onnx to an image that hears: the commands of README, as they stand there."""
        if not shutil.which('arm-none-eabi-gcc') or not shutil.which('qemu-system-arm'): self.skipTest('no arm-none-eabi-gcc, qemu-system-arm (make deps)')
        with open(os.path.join(ROOT, 'README.md')) as file:
            commands = re.search('^python3 examples/import_onnx.py .*?^qemu-system-arm [^\n]*', file.read(), re.M | re.S).group().replace('python3', sys.executable)
        os.mkdir(self.path('build'))
        os.symlink(TL_PLAN, self.path('build/tl_plan'))
        os.symlink(os.path.join(ROOT, 'examples'), self.path('examples'))
        shutil.copy(keywords.MODEL, self.path('model.onnx'))
        shutil.copy(keywords.CALIBRATION, self.path('samples.npz'))
        shutil.copy(os.path.join(keywords.DEVICE, 'main.c'), self.folder)
        keywords.write_clips(self.folder, np.fromfile(keywords.KEPT + '.clips', np.int8))
        done = subprocess.run(['bash', '-euc', commands], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        text = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, text)
        self.assertGreaterEqual(len(re.findall('^right ', text, re.M)), 10, text)
        self.assertRegex(text, '(?m)^stack ')

    @unittest.skipUnless('CMSIS_NN' in os.environ, 'CMSIS_NN is no clone of CMSIS-NN')
    def test_bits_are_those_of_cmsis_nn(self):
        """On all clips on the host, on some of them on the device."""
        clips = quantised(self.features)
        wanted = run_host(self.code('i8-channel')[0], clips)
        folder, _ = self.code('i8-channel', '--kernels', 'cmsis-nn')
        np.testing.assert_array_equal(run_host(folder, clips, keywords.cmsis_files()), wanted)
        made, _ = run_device(folder, clips[:keywords.CLIPS], (), keywords.cmsis_files())
        np.testing.assert_array_equal(made, wanted[:keywords.CLIPS])
