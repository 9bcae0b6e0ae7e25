"""The network of examples/train_keywords.py: trained once into build/keywords, planned, compiled for the host or for a
Cortex-M4, and run on its test clips; beside ONNX Runtime in floats and with quantize_static on the same calibration data."""
import contextlib, glob, os, re, shutil, subprocess, sys

import import_onnx
import interpret
import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from support import BUILD, HERE, ROOT, TL_PLAN

sys.path.insert(0, os.path.join(ROOT, 'examples', '05_device'))
import clips as device_clips

FOLDER = os.environ.get('KEYWORDS', os.path.join(BUILD, 'keywords'))
MODEL, CALIBRATION, TEST, NET = (os.path.join(FOLDER, name) for name in ('model.onnx', 'calibration.npz', 'test.npz', 'net'))
SCRIPT = os.path.join(ROOT, 'examples', 'train_keywords.py')
BOARD = os.path.join(ROOT, 'examples', '04_device')
DEVICE = os.path.join(ROOT, 'examples', '05_device')
KEPT = os.path.join(DEVICE, 'keywords')     # what make run-device runs
WARN = ('-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Wcast-qual -Wswitch-default -Werror').split()
ARM = ('arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -O2 -ffunction-sections -fdata-sections '
       '-ffreestanding -fno-tree-loop-distribute-patterns -nostartfiles -nostdlib -Wl,--gc-sections').split()
QEMU = ('qemu-system-arm -machine mps2-an386 -nographic -monitor none -serial none -icount shift=0 '
        '-semihosting-config enable=on,target=native -kernel').split()
CLIPS = 3       # that the device hears
FORMS = ('by hand', (), ('-DBY_HAND',)), ('whole tensors', (), ()), ('regions of rows', ('--rows',), ())     # what the device runs

def profiles_of(scheme):
    """One scheme for an op, as quantize_static has them."""
    return 'profiles 1\n' + ''.join('profile %s %s=0.001:1\n' % (op, scheme) for op in ('conv2d', 'depthwise', 'linear')) + 'profile * i8=0.001:1\n'


CHOICES = {     # name: options of tl_plan
    'i8-channel': ['--precision', 'loss=1e9,objective=bytes,schemes=i8+i8-channel,inputs=i8,sensitive,unknown,any-result', '--profiles', 'PROFILES'],
    'i8': ['--precision', 'loss=1e9,objective=bytes,schemes=i8,inputs=i8,sensitive,unknown,any-result'],
    'w4a8': ['--precision', 'loss=1e9,objective=bytes,schemes=i8+w4a8,inputs=i8,sensitive,unknown,any-result', '--profiles', 'PROFILES'],
    'limits': ['--ram', '16K', '--flash', '32K', '--precision', 'schemes=f32+i8+i8-channel+w8a16,inputs=i8,sensitive,unknown,any-result'],
    'limits, 20K': ['--ram', '16K', '--flash', '20K', '--precision', 'schemes=f32+i8+i8-channel+w8a16+w4a8,inputs=i8,sensitive,unknown,any-result'],
}


def find_python():
    """A Python that has PyTorch; None: there is none."""
    for python in 'python3', '/usr/bin/python3':
        if shutil.which(python) and subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode == 0: return python
    return None


def prepare():
    """Train, if that was not done, and import; a reason why not, or None."""
    if not os.path.exists(TEST):
        python = find_python()
        if not python or not shutil.which('espeak-ng'): return 'no PyTorch or no espeak-ng (Debian: python3-torch espeak-ng)'
        subprocess.run([python, SCRIPT, '-o', FOLDER], check=True)
    with contextlib.redirect_stdout(sys.stderr): code = import_onnx.main([MODEL, '-o', NET, '--calibrate', CALIBRATION])
    if code: raise AssertionError('import_onnx.py refuses the model')
    return None


def read_test():
    with np.load(TEST) as file: return file['features'], file['labels']


# -- ONNX Runtime --

class Clips(CalibrationDataReader):
    def __init__(self, features): self.features = iter(features)

    def get_next(self):
        one = next(self.features, None)
        return None if one is None else {'features': one[None]}


def run_onnx(path, features):
    session = onnxruntime.InferenceSession(path, providers=['CPUExecutionProvider'])
    return np.concatenate([session.run(None, {'features': features[k:k + 240]})[0] for k in range(0, len(features), 240)])


def quantize_onnx(folder):
    """QDQ in int8, weights by channel; before it ONNX Runtime folds batch normalisation, as its guide asks for."""
    folded, path, options = os.path.join(folder, 'folded.onnx'), os.path.join(folder, 'static.onnx'), onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = folded
    onnxruntime.InferenceSession(MODEL, options, providers=['CPUExecutionProvider'])
    with np.load(CALIBRATION) as file: features = file['features']
    quantize_static(folded, path, Clips(features), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8)
    return path


# -- generated code --

def write_code(folder, choice, *more, net=NET):
    """The program of a choice in folder; what tl_plan says."""
    os.makedirs(folder, exist_ok=True)
    profiles = os.path.join(folder, 'profiles')
    with open(profiles, 'w') as file: file.write(profiles_of(choice))
    how = [profiles if word == 'PROFILES' else word for word in CHOICES[choice]]
    done = subprocess.run([TL_PLAN, net + '.tlg', '--inference', '--align', '16', *how, '--weights', net + '.safetensors', '--ranges', net + '.ranges',
                           '--c-code=calls', 'net', *(() if '--kernels' in more else ('--kernels', 'own')), *more, '-o', folder], capture_output=True, text=True)
    if done.returncode or done.stderr: raise AssertionError(done.stderr)
    return done.stdout


def quantised(features, net=NET):
    """Clips as the program reads them: int8, channels last (there is one)."""
    return device_clips.quantise(interpret.read(net)[0], features)


def sources(folder): return [os.path.join(folder, 'net%s.c' % part) for part in ('', '_constants', '_kernels')]
def includes(folder): return ['-I' + folder, '-I' + os.path.join(ROOT, 'examples'), '-I' + BOARD]


def command(words, **more):
    done = subprocess.run(words, capture_output=True, **more)
    if done.returncode: raise AssertionError('%s: %s' % (' '.join(words), done.stderr.decode()))
    return done.stdout


def cmsis_files():
    """Options and sources of CMSIS-NN, of the clone that the environment names."""
    cmsis = os.environ['CMSIS_NN']
    files = [f for part in 'Activation BasicMath Convolution FullyConnected NNSupport Pooling Softmax'.split()
             for f in glob.glob('%s/Source/%sFunctions/*.c' % (cmsis, part)) if not re.search('_f16|_f32|_flt', f)]
    return ['-isystem', cmsis + '/Include', '-w', '-fbuiltin'], sorted(files)


def warnings(more): return [] if more[0] else WARN


def run_host(folder, clips, more=((), ())):
    """Results [clips][12] of a program, in its format as integers or floats."""
    program = os.path.join(folder, 'host')
    command(['cc', '-O2', *warnings(more), *more[0], *includes(folder), '-o', program, os.path.join(HERE, 'host.c'), *sources(folder), *more[1]])
    made = command([program], input=clips.tobytes())
    kind = {12: np.int8, 24: np.dtype('<i2'), 48: np.dtype('<f4')}[len(made) // len(clips)]
    return np.frombuffer(made, kind).reshape(len(clips), 12)


def write_clips(folder, numbers):
    """What main.c of the device includes: of each clip its label, and its features."""
    with open(os.path.join(folder, 'clips.inc'), 'w') as file: file.write(',\n'.join(map(str, numbers)))


def run_device(folder, clips, flags=(), more=((), ())):
    """Results of a program on a Cortex-M4, int8, and its instructions a clip."""
    write_clips(folder, np.frombuffer(device_clips.pack([0] * len(clips), clips), np.int8))
    with open(sources(folder)[2]) as file: tables = file.read().partition('\nvoid net_')[0]
    with open(os.path.join(folder, 'tables.h'), 'w') as file: file.write(tables)
    program = os.path.join(folder, 'device.elf')
    files = [path for path in sources(folder) if '-DBY_HAND' not in flags or not path.endswith('_kernels.c')]
    command([*ARM, *warnings(more), *more[0], *flags, '-I' + BOARD + '/freestanding', *includes(folder), '-T', BOARD + '/board.ld', '-o', program,
             os.path.join(DEVICE, 'main.c'), BOARD + '/board.c', *files, *more[1], '-lgcc'])
    done = subprocess.run([*QEMU, program], capture_output=True, text=True, timeout=300)
    text = done.stdout + done.stderr
    numbers = [int(x, 16) for line in re.findall(r'^scores (.+)', text, re.M) for x in line.split()]
    if not re.search('^stack', text, re.M) or len(numbers) != 12 * len(clips): raise AssertionError(text)
    return np.array(numbers, np.uint8).view(np.int8).reshape(-1, 12), int(re.search(r'^instructions (\w+)', text, re.M).group(1), 16)
