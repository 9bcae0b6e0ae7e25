"""Trained models as C: what tl_plan writes of an imported model, compiled and run, beside TFLM and ONNX Runtime."""
import os, re, subprocess

import export_onnx
import import_onnx
import import_tflite
import interpret
import lite_nets
import nets
import numpy as np
import tflm
import tiny_model
from support import Case, ROOT, TL_PLAN, output_of, plan, stored
from test_onnx import run_onnx

MAIN = '''#include <stdio.h>
#include "net.h"

void net_load(int32_t micro_batch) { (void)micro_batch; if (fread(%(input)s, 1, %(input)s_BYTES, stdin) != %(input)s_BYTES) *%(input)s = 0; }

int main(int count, char **words) {
    int k;
    (void)words;
    for (k = 1; k < count; k++) {
        net_run();
        fwrite(%(result)s, 1, %(result)s_BYTES, stdout);
    }
    return 0;
}
'''
WORDS = 'loss=1e9,objective=bytes,schemes=%s,sensitive,any-result,unknown'


class Code(Case):
    def by_channel(self):
        """Profiles that know convolutions and dense layers with a scale for each channel alone."""
        text = plan_profiles()
        for op in tiny_model.WEIGHTED: text = re.sub(r'(?m)^(profile %s .*) i8=\S+' % op, r'\1', text)
        with open(self.path('by_channel.profiles'), 'w') as file: file.write(re.sub(r' best=i8-channel', '', text))
        return ['--profiles', file.name]

    def written(self, *options):
        """Let tl_plan write the program of self.path('net'); how to run it, {input: samples} to outputs."""
        prefix, folder = self.path('net'), self.path('code')
        os.makedirs(folder, exist_ok=True)
        plan(prefix + '.tlg', '--inputs-die', '--weights', prefix + '.safetensors', '--ranges', prefix + '.ranges', '--kernels', 'own',
             '--c-code=calls', 'net', '-o', folder, '--json', self.path('plan.json'), *options)
        with open(os.path.join(folder, 'net.h')) as file: text = file.read()
        places = {kind.lower(): re.search(r'#define (NET_%s_\w+) \(' % kind, text).group(1) for kind in ('INPUT', 'RESULT')}
        with open(os.path.join(folder, 'main.c'), 'w') as file: file.write(MAIN % places)
        sources = [os.path.join(folder, name + '.c') for name in ('net', 'net_constants', 'net_kernels', 'main')]
        subprocess.run(['gcc', '-std=c99', '-O1', '-ffp-contract=off', '-Wall', '-Wextra', '-Werror', '-I', folder, '-I', os.path.join(ROOT, 'examples'),
                        '-o', self.path('program'), *sources, '-lm'], check=True)

    def run_code(self, samples, dtype):
        """Outputs for samples as nodes store them."""
        raw = subprocess.run([self.path('program'), *['x'] * len(samples)], input=b''.join(x.tobytes() for x in samples), capture_output=True, check=True).stdout
        return np.frombuffer(raw, dtype).reshape(len(samples), -1)

    def test_bits_of_tflm(self):
        """Models in int8 from .tflite, whole and by rows."""
        for make in (lite_nets.exact, lite_nets.curves, lite_nets.joined, lite_nets.resnet8, lambda: lite_nets.ds_cnn(16, 2), lambda: lite_nets.mobilenet(48)):
            data = make().write()
            with open(self.path('net.tflite'), 'wb') as file: file.write(data)
            self.assertEqual(import_tflite.main([file.name, '-o', self.path('net')]), 0)
            samples = tflm.random_samples(data, 5)
            wanted = [y.ravel().tolist() for y in tflm.run(data, samples)]
            for more in ((), ('--rows',)):
                self.written('--precision', WORDS % 'i8+i8-channel' + ',inputs=i8', *more)
                self.assertEqual(self.run_code(samples, np.int8).tolist(), wanted, more)

    def test_floats_of_onnx_runtime(self):
        for make in (nets.little, lambda: nets.ds_cnn(8, 1), nets.resnet8, lambda: nets.autoencoder(64)):
            model = make()
            self.assertEqual(import_onnx.main([nets.save(model, self.path('net.onnx')), '-o', self.path('net')]), 0)
            (name, arrays), = nets.samples_of(model, 3).items()
            for more in ((), ('--rows',)):
                self.written('--precision', WORDS % 'f32', *more)
                got = self.run_code([np.ascontiguousarray(stored(arrays[k:k + 1])) for k in range(3)], np.float32)
                for k in range(3): self.assert_close(got[k], run_onnx(model, {name: arrays[k:k + 1]})[0], 1e-4, more)

    def test_the_scales_of_an_export_are_those_of_the_code(self):
        """A float model, quantised by tl_plan: what export_onnx.py writes, read again and computed, has the bits of the code."""
        for make in (nets.little, lambda: nets.ds_cnn(8, 1), nets.resnet8):
            model, data = make(), self.path('data.npz')
            np.savez(data, **nets.samples_of(model, 8))
            self.assertEqual(import_onnx.main([nets.save(model, self.path('net.onnx')), '-o', self.path('net'), '--calibrate', data]), 0)
            for schemes, more in (('i8', []), ('i8+i8-channel', self.by_channel())):
                self.written('--precision', WORDS % schemes + ',inputs=i8', *more)
                self.assertEqual(export_onnx.main([self.path('net'), '--plan', self.path('plan.json'), '-o', self.path('out.onnx')]), 0)
                self.assertEqual(import_onnx.main([self.path('out.onnx'), '-o', self.path('again')]), 0)
                nodes = interpret.read(self.path('again'))
                (name, arrays), = nets.samples_of(model, 4, seed=9).items()
                samples = [np.clip(np.rint(stored(arrays[k:k + 1]) / nodes[0].scale) + nodes[0].zero, -128, 127).astype(np.int8) for k in range(4)]
                wanted = [interpret.run(nodes, {name: x}, interpret.compute_int)[output_of(nodes).name].ravel().tolist() for x in samples]
                self.assertEqual(self.run_code(samples, np.int8).tolist(), wanted, schemes)


def plan_profiles():
    return subprocess.run([TL_PLAN, '--default-profiles'], capture_output=True, text=True, check=True).stdout
