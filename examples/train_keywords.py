#!/usr/bin/env python3
"""Train a network that hears ten spoken words, and write it with data to calibrate and to test it.

    train_keywords.py [-o FOLDER] [--clips N] [--tests N] [--epochs N] [--jobs N]

Needs numpy, PyTorch and the program espeak-ng (Debian: apt-get install python3-numpy python3-torch espeak-ng). Nothing is
downloaded: the words are spoken here, by 30 of espeak-ng's voices for training and 15 others for the tests, in eight
accents, at many speeds and pitches.

  FOLDER/model.onnx        float; input features (batch, 1, 49, 10), output scores (batch, 12); batch normalisation as nodes
  FOLDER/calibration.npz   features: 200 clips of the training voices, for import_onnx.py --calibrate
  FOLDER/test.npz          features, labels, and words, the names of labels; mean and deviation of each coefficient

  clips     one second at 16 kHz: a word at a random place, under noise (white, pink, hum, other voices) that is 5 to 30 dB
            weaker; of an utterance for training five, each with another noise and place, of one for the tests one.
            Words that are none of the ten are `unknown`, some of them in the tests alone; noise without voices is `silence`
  features  49 frames of 40 ms, 20 ms apart; 40 mel bands of 20 .. 4000 Hz, logarithms, 10 coefficients of the cosine
            transform. Each is minus its mean and over its deviation in the training clips
  network   the depthwise separable one of Zhang et al., Hello Edge, 2017, arXiv:1711.07128, in its small size, that MLPerf
            Tiny uses: a convolution of 10 x 4, four blocks of 64 channels, a mean, a dense layer
  time      eight minutes of processor time, most of it training, on as many cores as --jobs says. Random numbers begin the same in each run; PyTorch may sum
            in another order on another machine

Numbers are for speech of a synthesizer: people would be heard less well.
"""
import argparse, collections, concurrent.futures, functools, inspect, os, shutil, struct, subprocess, sys, warnings

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as missing:
    sys.exit('train_keywords: %s (Debian: apt-get install python3-numpy python3-torch espeak-ng)' % missing)

WORDS = 'yes no up down left right on off stop go'.split()
LABELS = WORDS + ['unknown', 'silence']
OTHERS = 'bed bird cat dog eight five four happy house marvin nine one seven sheila six three tree two wow zero'.split()
OTHERS_OF_TESTS = 'backward follow learn visual stand know'.split()     # beside the others
ACCENTS = 'en-us en-gb en-gb-scotland en-gb-x-rp en-gb-x-gbclan en-gb-x-gbcwmd en-029 en-us-nyc'.split()
VOICES = ('m1 m2 m4 m5 m7 m8 f1 f2 f4 f5 Alex Alicia Andy Annie Denis Diogo Gene Hugo Jacky Lee Marco Michael adam anika belinda '
          'boris david ed grandma klatt2').split()
VOICES_OF_TESTS = 'm3 m6 f3 Andrea Henrique Mike aunty benjamin caleb edward linda max paul steph victor'.split()
RATE, SAMPLES = 16000, 16000
FRAME, STEP, FRAMES, BANDS, COEFFICIENTS = 640, 320, 49, 40, 10
CLIPS_OF_UTTERANCE, CALIBRATION, BATCH, SEED = 5, 200, 50, 42


class Refused(Exception):
    """One sentence that says what is wrong."""


def tell(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """Says every tenth part of a number of rounds, what and how far."""

    def __init__(self, what, count):
        self.what, self.count, self.done = what, count, 0

    def add(self, note=''):
        self.done += 1
        if self.done * 10 // self.count != (self.done - 1) * 10 // self.count:
            tell('%s: %d of %d%s' % (self.what, self.done, self.count, note))


# -- speech --

def check_voices():
    """Refuse what espeak-ng would replace by another voice without a word."""
    if not shutil.which('espeak-ng'): raise Refused('needs the program espeak-ng (Debian: apt-get install espeak-ng)')
    there = [subprocess.run(['espeak-ng', '--voices=' + kind], capture_output=True, text=True).stdout.split() for kind in ('variant', 'en')]
    missing = [name for name in VOICES + VOICES_OF_TESTS if '!v/' + name not in there[0]] + [name for name in ACCENTS if name not in there[1]]
    if missing: raise Refused('espeak-ng has no voice %s' % ', '.join(missing))


def resample(x, rate):
    """The same sound at RATE, through its spectrum."""
    whole = -(-len(x) // rate) * rate       # seconds without rest, so that the new length is whole
    made = whole // rate * RATE
    spectrum = np.fft.rfft(np.pad(x, (0, whole - len(x))))[:made // 2 + 1]
    return np.fft.irfft(spectrum, made)[:-(-len(x) * RATE // rate)] * (made / whole)


def speak(word, voice, speed, pitch):
    """What espeak-ng says, without silence around it, of loudness 1: at most SAMPLES at RATE."""
    done = subprocess.run(['espeak-ng', '-v', voice, '-s', str(speed), '-p', str(pitch), '-z', '--stdout', word], capture_output=True)
    wave, at = done.stdout, done.stdout.find(b'data')
    if done.returncode or wave[:4] != b'RIFF' or at < 36: raise Refused('espeak-ng makes no sound of %s by %s' % (word, voice))
    x = np.frombuffer(wave[at + 8:len(wave) - (len(wave) - at) % 2], '<i2').astype(np.float64)
    if not x.any(): raise Refused('espeak-ng is silent: %s by %s' % (word, voice))
    heard = np.flatnonzero(np.abs(x) > 0.02 * np.abs(x).max())
    x = resample(x[heard[0]:heard[-1] + 1], struct.unpack('<I', wave[24:28])[0])[:SAMPLES]
    return x / np.sqrt(np.mean(x**2))


def draw_utterances(generator, voices, words, count):
    """count of (word, voice, speed, pitch): each word, and each voice, as often as the others."""
    shuffled = [(words[k % len(words)], voices[k // len(words) % len(voices)]) for k in range(count)]
    return [(word, '%s+%s' % (generator.choice(ACCENTS), voice), int(generator.integers(110, 221)), int(generator.integers(20, 81)))
            for word, voice in shuffled]


def speak_all(what, utterances, jobs):
    progress, made = Progress(what, len(utterances)), []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for sound in pool.map(lambda utterance: speak(*utterance), utterances):
                made.append(sound)
                progress.add()
            return made
        except BaseException:       # Ctrl-C, too: what waits is not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# -- clips --

def draw_noise(generator, speech):
    """A second of noise of loudness 1; several voices are of speech, if there is any."""
    kind, at = generator.integers(4 if speech else 3), np.arange(SAMPLES)
    noise = generator.normal(0, 1, SAMPLES)
    if kind == 1:       # pink
        noise = np.fft.irfft(np.fft.rfft(noise) / np.sqrt(np.maximum(np.arange(SAMPLES // 2 + 1), 20)), SAMPLES)
    elif kind == 2:     # hum, over a floor
        tones = generator.uniform(50, 400) * np.arange(1, 6)
        noise = 0.2 * noise + sum(generator.uniform(0, 1) * np.sin(2 * np.pi * f / RATE * at + generator.uniform(0, 7)) for f in tones)
    elif kind == 3:     # several voices
        noise = 0.05 * noise
        for k in generator.integers(len(speech), size=4): noise += np.roll(np.pad(speech[k], (0, SAMPLES - len(speech[k]))), generator.integers(SAMPLES))
    return noise / np.sqrt(np.mean(noise**2))


def make_clip(generator, word, speech):
    """A word (None: silence) at a random place of a second, under noise, at a random loudness."""
    clip = draw_noise(generator, None if word is None else speech)
    if word is not None:
        clip *= 10 ** (-generator.uniform(5, 30) / 20)
        at = generator.integers(SAMPLES - len(word) + 1)
        clip[at:at + len(word)] += word
    return clip * 10 ** (generator.uniform(-12, 6) / 20)


# -- features --

def mel(frequency): return 1127 * np.log1p(frequency / 700)


@functools.lru_cache(None)
def make_bands(bins):
    """Triangles between BANDS + 2 frequencies that are equally far in mel: [bins][BANDS]."""
    edges = np.linspace(mel(20), mel(4000), BANDS + 2)
    at = mel(np.linspace(0, RATE / 2, bins))[:, None]
    return np.clip(np.minimum((at - edges[:-2]) / (edges[1:-1] - edges[:-2]), (edges[2:] - at) / (edges[2:] - edges[1:-1])), 0, None)


def make_features(clip):
    """[FRAMES][COEFFICIENTS] of a clip."""
    frames = np.lib.stride_tricks.sliding_window_view(clip, FRAME)[::STEP] * np.hanning(FRAME)
    power = np.abs(np.fft.rfft(frames, 1024))**2
    logs = np.log(power @ make_bands(power.shape[1]) + 1e-3)
    angles = np.pi / BANDS * (np.arange(BANDS)[:, None] + 0.5) * np.arange(COEFFICIENTS)
    return (logs @ np.cos(angles) * np.sqrt(2 / BANDS)).astype(np.float32)


def make_set(what, seed, voices, others, utterances, repeats, jobs):
    """Features and labels: words and unknown ones `utterances` times each, `repeats` clips of each, and as much silence."""
    generator = np.random.default_rng([SEED, seed])
    asked = draw_utterances(generator, voices, WORDS, utterances * len(WORDS)) + draw_utterances(generator, voices, others, utterances)
    speech = speak_all('speaking for ' + what, asked, jobs)
    sources = [(LABELS.index(word) if word in WORDS else len(WORDS), k) for k, (word, *_) in enumerate(asked)] + [(len(WORDS) + 1, None)] * utterances
    progress, features, labels = Progress('clips for ' + what, len(sources) * repeats), [], []
    for label, k in sources * repeats:
        features.append(make_features(make_clip(generator, None if k is None else speech[k], speech)))
        labels.append(label)
        progress.add()
    order = generator.permutation(len(labels))
    return np.array(features)[order, None], np.array(labels)[order]


# -- network --

def make_conv(name, channels_in, channels, kernel, **geometry):
    """A convolution, its normalisation and ReLU, as named layers."""
    conv = nn.Conv2d(channels_in, channels, kernel, bias=False, **geometry)
    return [(name, conv), (name + '_norm', nn.BatchNorm2d(channels)), (name + '_relu', nn.ReLU())]


def make_net(channels=64, blocks=4):
    layers = make_conv('first', 1, channels, (10, 4), stride=2, padding=(5, 1))
    for k in range(1, blocks + 1):
        layers += make_conv('depth%d' % k, channels, channels, 3, padding=1, groups=channels) + make_conv('point%d' % k, channels, channels, 1)
    layers += [('mean', nn.AdaptiveAvgPool2d(1)), ('flat', nn.Flatten()), ('dense', nn.Linear(channels, len(LABELS)))]
    return nn.Sequential(collections.OrderedDict(layers))


def train(net, features, labels, epochs):
    """Adam with a rate that rises and falls."""
    features, labels = torch.from_numpy(features), torch.from_numpy(labels)
    steps = len(labels) // BATCH
    optimizer = torch.optim.Adam(net.parameters(), weight_decay=1e-5)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=max(steps * epochs, 2))
    net.train()
    progress = Progress('training', steps * epochs)
    for _ in range(epochs):
        order = torch.randperm(len(labels))
        for k in range(steps):
            part = order[k * BATCH:(k + 1) * BATCH]
            loss = nn.functional.cross_entropy(net(features[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            progress.add(', loss %.3f' % loss.item())


def measure(net, features, labels):
    """The share of clips that are heard as what they are."""
    net.eval()
    with torch.no_grad(): made = [net(torch.from_numpy(features[k:k + 250])).argmax(1).numpy() for k in range(0, len(labels), 250)]
    return np.mean(np.concatenate(made) == labels)


# -- files --

def write_net(net, path):
    """Batch normalisation stays nodes of its own: importers fold it."""
    net.eval()
    newer = {'dynamo': False} if 'dynamo' in inspect.signature(torch.onnx.export).parameters else {}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        torch.onnx.export(net, torch.zeros(1, 1, FRAMES, COEFFICIENTS), path + '.new', opset_version=13, input_names=['features'],
                          output_names=['scores'], dynamic_axes={'features': {0: 'batch'}, 'scores': {0: 'batch'}},
                          training=torch.onnx.TrainingMode.PRESERVE, **newer)
    os.replace(path + '.new', path)


def write_arrays(path, **arrays):
    with open(path + '.new', 'wb') as file: np.savez(file, **arrays)
    os.replace(path + '.new', path)


def work(options):
    check_voices()
    os.makedirs(options.folder, exist_ok=True)
    if not os.access(options.folder, os.W_OK): raise Refused('%s: cannot be written to' % options.folder)
    torch.manual_seed(SEED)
    torch.set_num_threads(options.jobs)
    utterances = -(-options.clips // (CLIPS_OF_UTTERANCE * len(LABELS)))
    features, labels = make_set('training', 1, VOICES, OTHERS, utterances, CLIPS_OF_UTTERANCE, options.jobs)
    tests, answers = make_set('the tests', 2, VOICES_OF_TESTS, OTHERS + OTHERS_OF_TESTS, -(-options.tests // len(LABELS)), 1, options.jobs)
    mean, deviation = features.mean((0, 1, 2)), features.std((0, 1, 2))
    features, tests = (features - mean) / deviation, (tests - mean) / deviation
    net = make_net()
    train(net, features, labels, options.epochs)
    write_net(net, os.path.join(options.folder, 'model.onnx'))
    write_arrays(os.path.join(options.folder, 'calibration.npz'), features=features[:CALIBRATION])
    write_arrays(os.path.join(options.folder, 'test.npz'), features=tests, labels=answers, words=np.array(LABELS), mean=mean, deviation=deviation)
    tell('%d clips for training, %d for tests by other voices: %.2f %% of those are heard right' %
         (len(labels), len(answers), 100 * measure(net, tests, answers)))


def at_least(least):
    def number(text):
        if not text.isdigit() or not least <= int(text) <= 10**6: raise argparse.ArgumentTypeError('%s: must be %d to 1000000' % (text, least))
        return int(text)
    return number


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0], epilog=__doc__.split('\n\n', 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('-o', metavar='FOLDER', dest='folder', default='build/keywords', help='where files go (build/keywords)')
    parser.add_argument('--clips', metavar='N', type=at_least(1000), default=10000, help='clips for training (10000)')
    parser.add_argument('--tests', metavar='N', type=at_least(100), default=5280, help='clips for tests (5280)')
    parser.add_argument('--epochs', metavar='N', type=at_least(1), default=4, help='how often training sees each clip (4)')
    parser.add_argument('--jobs', metavar='N', type=at_least(1), default=os.cpu_count() or 1, help='threads (one a core)')
    try:
        work(parser.parse_args(arguments))
    except (Refused, OSError) as error:
        tell('train_keywords: %s' % ('%s: %s' % (error.filename, error.strerror) if isinstance(error, OSError) else error))
        return 1
    except KeyboardInterrupt:
        tell('train_keywords: stopped; nothing more is written')
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
