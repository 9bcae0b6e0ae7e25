#!/usr/bin/env python3
"""tl_plan.py [--every N] [PROGRAM]

What build/tl_plan promises, held against the program as it runs: exact optima of small graphs, schedules that
check_schedule.py accepts, JSON, SVG and HTML that other parsers read, and one sentence with the right exit code for every
kind of bad input. --every N: every N-th row of the small graphs only.
Exit status 0 all facts hold, 1 not; what lacks the reference data (TL_SHARED, else ../shared) prints SKIPPED.
"""
import argparse, csv, glob, html.parser, importlib.util, itertools, json, math, os, re, shutil, signal, subprocess, sys, tempfile, time
import xml.etree.ElementTree as xml
from fractions import Fraction

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
MODEL = os.path.join(HERE, '..', 'examples', 'residual.tlg')
KEYS = {'model', 'nodes', 'budget_bytes', 'keep_all_peak_bytes', 'peak_bytes', 'host_peak_bytes', 'arena_bytes', 'arena_bound_bytes', 'alignment_bytes', 'bank_bytes', 'block_count', 'base_cost', 'total_cost',
        'cost_ratio', 'lower_bound_cost', 'gap', 'proven_optimal', 'allocations', 'work', 'seconds'}
INFEASIBLE_KEYS = {'model', 'nodes', 'budget_bytes', 'keep_all_peak_bytes', 'base_cost', 'minimal_budget_bytes', 'limiting_node',
                   'work', 'seconds'}
POLICIES = []           # their names, as the program lists them
program = folder = None
every = 1

def run(*args, text=None, timeout=300):
    done = subprocess.run([program, *args], input=text, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr

def planned(*args):
    code, out, err = run(*args)
    assert code == 0 and not err, (args, code, err)
    return out

def refused(code, words, *args, text=None):
    """One sentence on standard error, nothing on standard output."""
    got, out, err = run(*args, text=text)
    assert got == code and not out, (args, got, out, err)
    assert err.startswith('tl_plan: ') and err.count('\n') == 1 and err.endswith('\n'), (args, err)
    assert all(word in err for word in words), (args, words, err)

def path(name): return os.path.join(folder, name)

def write(name, text):
    with open(path(name), 'w') as file: file.write(text)
    return path(name)

class Skipped(Exception): pass

def reference(name):
    found = os.path.join(ROOT, name)
    if not os.path.exists(found): raise Skipped('no reference data (%s)' % name)
    return found

def load_checker():
    spec = importlib.util.spec_from_file_location('check_schedule', reference('tools/check_schedule.py'))
    checker = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(checker)
    return checker

# -- plans --

def small_graphs_reach_the_optimum():
    checker = load_checker()
    rows = list(csv.DictReader(open(reference('small/optimum.csv'))))[::every]
    for row in rows:
        model = reference('small/%s.tlg' % row['model'])
        inference = row['mode'] == 'inference'
        code, out, err = run(model, '--budget', row['budget_bytes'], '--json', '-', '--schedule', path('small'),
                             *(['--inference'] if inference else []))
        got = json.loads(out)
        if row['optimum_cost'] == 'infeasible':
            assert code == 2 and set(got) == INFEASIBLE_KEYS, (row, got)
            assert got['minimal_budget_bytes'] == int(row['budget_bytes']) + 1, (row, got)
            continue
        assert code == 0 and set(got) == KEYS, (row, got, err)
        assert got['total_cost'] == int(row['optimum_cost']) == got['lower_bound_cost'], (row, got)
        assert got['proven_optimal'] is True and got['gap'] == 0, (row, got)
        replayed = checker.replay(checker.load(model), list(checker.read_steps(path('small'))), inference)
        assert replayed['cost'] == got['total_cost'] and replayed['peak'] == got['peak_bytes'] <= int(row['budget_bytes']), (row, replayed)
    return '%d rows' % len(rows)

def json_holds_the_figures():
    got = json.loads(planned(MODEL, '--budget', '55%', '--json', '-'))
    assert set(got) == KEYS, got
    assert got['model'] == 'residual' and got['nodes'] == 52
    assert got['budget_bytes'] == got['keep_all_peak_bytes'] * 55 // 100
    assert got['peak_bytes'] <= got['budget_bytes'] and got['host_peak_bytes'] == 0
    assert abs(got['cost_ratio'] - got['total_cost'] / got['base_cost']) < 1e-8
    assert got['lower_bound_cost'] <= got['total_cost']
    assert got['proven_optimal'] == (got['lower_bound_cost'] == got['total_cost'])
    assert got['work'] > 0 and got['seconds'] >= 0

def keep_all_is_shown_without_a_budget():
    out = planned(MODEL)
    assert 'keep all' in out and '--pareto' in out and ' 50 %' not in out, out
    work = float(out.split(' million steps')[0].split()[-1])
    assert work < 1, out        # one plan, and no other that nobody asked for
    got = json.loads(planned(MODEL, '--json', '-'))
    assert got['budget_bytes'] is None and got['peak_bytes'] == got['keep_all_peak_bytes'], got
    assert got['cost_ratio'] == 1 and set(got) == KEYS, got

def an_infeasible_budget_names_the_least_and_the_node():
    refused(2, ['10879104', 'because of node s'], MODEL, '--budget', '10879103')
    planned(MODEL, '--budget', '10879104')
    refused(2, ['6684800', 'because of node '], MODEL, '--budget', '6684799', '--inference')
    code, out, err = run(MODEL, '--budget', '1', '--json', '-')
    got = json.loads(out)
    assert code == 2 and set(got) == INFEASIBLE_KEYS and err.count('\n') == 1, (got, err)
    assert got['minimal_budget_bytes'] == 10879104 and got['limiting_node'] == 's3b2_relu2', got

def budgets_are_exact():
    def bytes_of(text): return json.loads(run(MODEL, '--budget', text, '--json', '-', '--work', '1')[1])['budget_bytes']
    cases = [('20MiB', 20 << 20), ('20.5MiB', 41 << 19), ('20MB', 20 * 10**6), ('20000kB', 20 * 10**6), ('20000KB', 20 * 10**6),
             ('20000000', 20 * 10**6), ('20000000B', 20 * 10**6), ('.02GB', 20 * 10**6), ('0.02GiB', (2 << 30) // 100), ('20480KiB', 20 << 20),
             ('0.0000000001TiB', 109), ('1.9999999999999999999999KiB', 2047), ('18446744073709551615', 2**64 - 1),
             ('17179869183.99999999999GiB', 17179869183 * 2**30 + (99999999999 * 2**30) // 10**11),
             ('100%', 34996352), ('33.3%', 34996352 * 333 // 1000), ('0.001%', 349), ('250%', 34996352 * 250 // 100), ('5%', 34996352 * 5 // 100)]
    for text, value in cases: assert bytes_of(text) == value, (text, value, bytes_of(text))

def one_work_limit_gives_one_plan():
    first = planned(MODEL, '--budget', '40%', '--work', '200000', '--schedule', '-')
    assert first == planned(MODEL, '--budget=40%', '--work=200000', '--schedule=-') and first.startswith('F ')

def a_seed_gives_another_plan():
    def schedule(*more): return planned(MODEL, '--budget', '40%', '--work', '200000', '--schedule', '-', *more)
    def points(*more): return json.loads(planned(MODEL, '--pareto', '--work', '100000', '--json', '-', *more))['points']
    plans = [schedule()] + [schedule('--seed', str(seed)) for seed in (1, 2, 2**64 - 1)]
    assert schedule('--seed=2') == plans[2] and len(set(plans)) > 1, plans
    assert points('--seed', '5') == points('--seed', '5') != points()
    for seed in '0', '-1', '1.5', 'x': refused(1, ['--seed ' + seed, 'must be a whole number'], MODEL, '--budget', '50%', '--seed', seed)
    refused(1, ['--seed'], MODEL, '--seed', '1')
    for more in ['--policy', 'revolve'], ['--order'], ['--front']: refused(1, ['--seed', more[0]], MODEL, '--budget', '50%', '--seed', '1', *more)

def standard_input_is_a_model():
    with open(MODEL) as file: text = file.read()
    code, out, err = run('-', '--budget', '60%', '--json', '-', text=text)
    assert code == 0 and json.loads(out)['model'] == 'stdin', err
    refused(1, ['standard input', 'line 2'], '-', '--budget', '60%', text='tlg 1\nnode x\n')

def policies_plan_or_say_what_they_need():
    POLICIES[:] = run(MODEL, '--policy', 'greedy')[2].split(' one of ')[1].split()
    assert {'keep-all', 'every-n', 'chen-sqrt', 'chen-greedy', 'selective', 'revolve'} <= set(POLICIES)
    assert all(policy in planned('--help') for policy in POLICIES)
    best = json.loads(planned(MODEL, '--budget', '60%', '--json', '-'))
    tried = 0
    for policy in POLICIES:
        code, out, err = run(MODEL, '--budget', '60%', '--policy', policy, '--json', '-')
        got = json.loads(out)
        if code == 2:
            assert set(got) == INFEASIBLE_KEYS and 'needs' in err and err.count('\n') == 1, (policy, got, err)
            continue
        tried += 1
        assert code == 0 and set(got) == KEYS and got['peak_bytes'] <= got['budget_bytes'], (policy, got, err)
        assert got['total_cost'] >= best['total_cost'] and got['lower_bound_cost'] == best['lower_bound_cost'], (policy, got)
    assert tried >= 3
    refused(1, ['--policy', 'greedy', *POLICIES], MODEL, '--budget', '60%', '--policy', 'greedy')
    refused(1, ['inference'], MODEL, '--budget', '60%', '--policy', 'every-n', '--inference')

def negative_numbers_are_values():
    for option, word in ('--budget', 'must be bytes'), ('--loss', 'must be a number'), ('--work', 'must be a whole number'), ('--align', 'must be a power of two'):
        refused(1, [option + ' -5', word], MODEL, '--compile', option, '-5')
    refused(1, ['--budget: a value must follow'], MODEL, '--budget', '--compile')
    out = planned(MODEL, '--policy', 'chen-greedy', '--explain')
    assert 'chen-greedy' in out and 'made again' in out
    points = planned(MODEL, '--pareto', '--work', '100000')
    for policy in POLICIES: assert '  %s\n' % policy in points, policy

def tables_compile():
    planned(MODEL, '--budget', '50%', '--c-table', path('residual.h'))
    write('main.c', '#define TL_STRATEGY_IMPLEMENTATION\n#define TL_NO_PLANNERS\n#include "tl_strategy.h"\n#include "residual.h"\n'
                    '#include <stdio.h>\nint main(void) { tl_plan plan = residual_plan; printf("%d\\n", (int)plan.peak_bytes);\n'
                    'return (int)tl_measure_plan(NULL, &residual_graph, NULL, &plan); }\n')
    subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-I', os.path.join(HERE, '..'), '-o', path('main'), path('main.c'), '-lm', '-lpthread'],
                   check=True, timeout=300)
    got = json.loads(planned(MODEL, '--budget', '50%', '--json', '-'))
    assert int(subprocess.run([path('main')], capture_output=True, check=True, text=True).stdout) == got['peak_bytes']
    with open(MODEL) as file: text = file.read()
    for name, prefix in [('8-net__v2_.tlg', 'net_v2_plan'), ('---.tlg', 'm_plan'), ('x' * 80 + '.tlg', 'x' * 48 + '_plan')]:
        assert prefix in planned(write(name, text), '--budget', '50%', '--work', '1000', '--c-table', '-'), name
    table = planned(MODEL, '--align', '64', '--work', '1000', '--c-table', '-', '--name', 'My_net')
    for line in ('#define MY_NET_ALIGNMENT 64\n', 'static const tl_plan My_net_plan = {\n', '    64,  // alignment_bytes\n'): assert line in table, line
    for name in ('2net', 'a-b', 'x' * 49): refused(1, ['name', '1 to 48 letters'], MODEL, '--work', '1000', '--c-table', path('t.h'), '--name', name)
    refused(1, ['--name', '--c-table'], MODEL, '--name', 'net')
    for option in '--compact', '--no-names': refused(1, [option, '--c-table'], MODEL, option)
    narrow = []
    for options in [], ['--compact'], ['--compact', '--no-names']:
        planned(MODEL, '--budget', '50%', '--c-table', path('residual.h'), *options)
        subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-I', os.path.join(HERE, '..'), '-o', path('main'), path('main.c'), '-lm', '-lpthread'],
                       check=True, timeout=300)
        assert int(subprocess.run([path('main')], capture_output=True, check=True, text=True).stdout) == got['peak_bytes']
        with open(path('residual.h')) as file: table = file.read()
        narrow.append('residual_narrow' in table)
        assert ("'i','m','a','g','e',0" in table) == ('--no-names' not in options)
    assert narrow == [False, True, True]

def generated_code_compiles_and_links():
    os.mkdir(path('code'))
    read = lambda name: open(path(os.path.join('code', name))).read()
    cc = [os.environ.get('CC', 'cc'), '-std=c99', '-Wall', '-Wextra', '-Wpedantic', '-Wconversion', '-Werror', '-ffreestanding', '-c']
    texts = {}
    for form in '--c-code', '--c-code=calls', '--c-code=table', '--c-code=smallest':
        for more in [], ['--inference'], ['--bank', '8MiB', '--bank', 'any'], ['--host-budget', '50%', '--link', '900GB/s', '--states', '2', '--micro-batches', '3']:
            planned(MODEL, '--budget', '100%' if '--inference' in more else '55%', '--work', '100000', form, 'net', '-o', path('code'), *more)
            subprocess.run([*cc, '-o', path('net.o'), path('code/net.c')], check=True, timeout=300)
            names = subprocess.run(['nm', '-u', path('net.o')], capture_output=True, check=True, text=True).stdout.split()
            own = re.compile(r'memset|_GLOBAL_OFFSET_TABLE_|U|w|net_(load|copy|wait|weights|\w+_(forward|backward))')
            assert all(own.fullmatch(name) for name in names), names
            texts[form, *more[:1]] = read('net.c')
            if '--inference' in more: assert '_backward' not in read('net.h')
            if '--bank' in more: assert 'net_bank_1[NET_BANK_1_BYTES]' in read('net.h')
            if '--micro-batches' in more: assert '#define NET_MICRO_BATCHES 3\n' in read('net.h')
    for more in [(), ('--inference',), ('--bank',), ('--host-budget',)]:
        assert 'net_rows' not in texts['--c-code=calls', *more] and 'net_rows' in texts['--c-code=table', *more]
        assert texts['--c-code', *more] in (texts['--c-code=calls', *more], texts['--c-code=table', *more])
    assert '// stem_norm: step 1\n' in texts['--c-code=calls',]
    assert sorted(os.listdir(path('code'))) == ['net.c', 'net.h']
    work = [MODEL, '--budget', '55%', '--work', '1000']
    for args, words in [(['--c-code', 'net'], ['--c-code', '-o']), (['-o', folder], ['-o', '--c-code']), (['--states', '1'], ['--states', '--c-code']),
                        (['--micro-batches', '2'], ['--micro-batches', '--c-code']), (['--c-code', '2net', '-o', folder], ['2net', '1 to 48 letters']),
                        (['--c-code', '../net', '-o', folder], ['1 to 48 letters']), (['--c-code=rows', 'net', '-o', folder], ['rows', 'calls, table']),
                        (['--c-code', 'net', '--c-code=table', 'net', '-o', folder], ['twice']), (['--c-code', 'net', '-o', path('none')], ['none', 'cannot be written']),
                        (['--c-code', 'net', '-o', folder, '--states', '17'], ['--states', '0 to 16']), (['--c-code', 'net', '-o', folder, '--micro-batches', '0'], ['--micro-batches']),
                        (['--c-code', 'net', '-o', MODEL], ['cannot be written'])]:
        refused(1, words, *work, *args)
    refused(1, ['--c-code'], MODEL, '--pareto', '--c-code', 'net', '-o', folder)
    assert not glob.glob(path('net.[ch]*'))     # nothing half-written

def operands_of_code_are_aligned():
    os.mkdir(path('code'))
    read = lambda name: open(path(os.path.join('code', name))).read()
    # bytes and floats side by side: where no alignment is asked for every operand lies at a multiple of 8, and floats never at one of 2
    mixed = write('mixed.tlg', 'tlg 1\nnode 0 x input fwd=0 bwd=0 out=1964 needs=none in=-\n' +
                  ''.join('node %d n%d %s fwd=%d bwd=1 out=%d needs=in in=%d param=36%s\n' % (i, i, op, cost, size, i - 1, more)
                          for i, op, cost, size, more in [(1, 'conv2d', 10**5, 1964, ''), (2, 'sin', 10, 1964, ''), (3, 'conv2d', 1000, 1964, ''),
                                                          (4, 'linear', 10, 40, ' keep')]))
    eighths = ['--inference', '--precision', 'loss=0.1,objective=bytes,schemes=f32+i8,sensitive', '--budget', '7000', '--c-code=calls', 'net', '-o', path('code')]
    places = lambda: [int(at) for at in re.findall(r'net_bank_0 \+ (\d+)', read('net.c') + read('net.h'))]
    out = planned(mixed, *eighths)
    assert places() and all(at % 8 == 0 for at in places()) and ' 4 in i8' not in out, places()
    planned(mixed, *eighths, '--align', '4')
    assert all(at % 4 == 0 for at in places())
    for align in '1', '2': refused(1, ['--align ' + align, 'in f32', 'multiples of 4 bytes'], mixed, *eighths, '--align', align)

def frozen_weights_take_no_ram():
    os.mkdir(path('code'))
    read = lambda name: open(path(os.path.join('code', name))).read()
    # weights that nobody trains take no RAM: with param=, as states, and as states that an optimizer makes of them
    weights = {'param': '', 'state': 'state 1 a.w state w=2000 frozen\n'}
    for way, more, constants, ram in [('param', [], 2000, 'weights 400, gradients 400, optimizer 400'), ('state', [], 2000, 'weights 400, gradients 400, optimizer 400'),
                                      ('param', ['--optimizer', 'momentum'], 2000, 'weights 0, gradients 0, optimizer 0')]:
        first = way == 'state'
        model = write('frozen.tlg', 'tlg 2\nnode 0 x input fwd=0 bwd=0 out=64 needs=none in=-\n' + weights[way] +
                      'node %d a conv fwd=9 bwd=0 out=64 needs=none in=0%s grad=no\nnode %d b conv fwd=9 bwd=9 out=64 needs=in in=%d param=400\n'
                      'node %d l loss fwd=9 bwd=9 out=4 needs=in in=%d keep\nend %d\n'
                      % (1 + first, ',1' if first else ' param=2000', 2 + first, 1 + first, 3 + first, 2 + first, 4 + first))
        out = planned(model, '--budget', '200%', *([] if more else ['--states', '1']), *more, '--c-code=calls', 'net', '-o', path('code'), '--json', path('net.json'))
        assert ram in out and ' %d of constants\n' % constants in out, out
        arrays = dict(re.findall(r'#define NET_(\w+_BYTES) (\d+)', read('net.h')))
        assert int(arrays['FROZEN_BYTES']) == constants and int(arrays['BANK_0_BYTES']) < 2000, arrays
        taken = int(re.search(r'(\d+) bytes of RAM', out).group(1))
        code = json.load(open(path('net.json')))['code']
        assert code['ram_bytes'] == taken == sum(code[k] for k in ('bank_bytes', 'weight_bytes', 'gradient_bytes', 'state_bytes', 'scratch_bytes')), code
        assert code['constant_bytes'] == constants and code['bank_bytes'] == int(arrays['BANK_0_BYTES']), code
        assert taken == sum(int(arrays.get(name, 0)) for name in ('BANK_0_BYTES', 'WEIGHTS_BYTES', 'GRADIENTS_BYTES', 'STATE_BYTES'))
        assert 'const unsigned char net_frozen[NET_FROZEN_BYTES]' in read('net.h') and 'net_frozen[' not in read('net.c')
    tabled = planned(model, '--optimizer', 'momentum', '--c-code=calls', 'net', '-o', path('code'), '--c-table', path('frozen.h'))
    assert ' 0 of constants\n' in tabled and 'FROZEN' not in read('net.h')      # the executor has all states in the arena

def inputs_have_the_format_that_saves_most():
    # an input that dies, in i8: the least that its network takes, from an option or from what the model declares
    chain = lambda size, more: ('tlg 2\nnode 0 x input fwd=0 bwd=0 out=%d needs=none in=-%s\n' % (size, more) +
                                ''.join('node %d n%d conv2d fwd=9 bwd=1 out=4096 needs=in in=%d param=36%s\n' % (i, i, i - 1, ' keep' * (i == 4))
                                        for i in range(1, 5)) + 'end 5\n')
    whole = 'loss=1,objective=bytes,schemes=f32+i8,sensitive,any-result'
    arena = lambda text, *args: json.loads(planned(write('dies.tlg', text), '--inference', '--budget', '100%', '--json', '-', *args))['arena_bytes']
    assert arena(chain(4096, ''), '--inputs-die', '--precision', whole + ',inputs=i8') == 2048
    assert arena(chain(4096, ''), '--inputs-die', '--precision', whole + ',inputs=f32+i8') == 2048
    assert arena(chain(1024, ' dies format=i8'), '--precision', whole) == 2048
    assert arena(chain(4096, ''), '--inputs-die', '--precision', whole) == 5120
    refused(1, ['inputs=i9', 'must be some of', 'i8'], MODEL, '--inference', '--precision', 'loss=1,inputs=i9')
    refused(1, ['input_schemes', 'graph inputs'], MODEL, '--inference', '--precision', 'loss=1,inputs=i8-channel')

class Link:
    """A speed that gives whole units of cost, rounded up, as the library counts them: bytes in 10^9 units."""
    def __init__(self, rate): self.rate = rate
    def __rtruediv__(self, size): return -(-size * 10**9 // self.rate)

def host_copies_take_what_the_link_takes():
    checker = load_checker()
    # model, budget, host budget, link and unit as said to the program; bytes in 10^9 units of cost; such units in one of the model
    cases = [('gpt2_small_rl', '40%', '2GiB', ['--link', '12'], 1200000, 1), ('vgg16_rl', '84%', '20%', ['--link', '12GB/s'], 1200000, 1),
             ('mobilenet_v2_rl', '40%', '1GiB', ['--link', '1.0', '--cost-unit', 'flop@10TFLOPS'], 100000, 1),
             ('mobilenet_v2_rl', '40%', '1GiB', ['--link', '6GB/s', '--cost-unit', 'flop@2.5TFLOPS'], 2400000, 1),
             ('encoder2', '30%', '100MiB', ['--link', '512MiB/s', '--cost-unit', 'flop@300MFLOPS'], 512 * 2**20 // 3, 10),
             ('encoder2', '30%', '100MiB', ['--link', '512MiB/s', '--cost-unit', 'us'], 512 * 2**20, 1000),
             ('encoder2', '30%', '100MiB', ['--link', '12', '--cost-unit', 'ns'], 12 * 10**9, 1)]
    spilled = 0
    def load(model, finer):
        nodes = checker.load(model)
        for node in nodes: node.fwd, node.bwd = node.fwd * finer, node.bwd * finer
        return nodes
    for name, budget, host, link, rate, finer in cases:
        model = reference('models/%s.tlg' % name)
        args = [model, '--budget', budget, '--host-budget', host, *link, '--work', '30000000']
        got = json.loads(planned(*args, '--json', '-', '--schedule', path('schedule')))
        steps = list(checker.read_steps(path('schedule')))
        replayed = checker.replay(load(model, finer), steps, link=Link(rate))
        assert replayed['cost'] == got['total_cost'] and replayed['peak'] == got['peak_bytes'] <= got['budget_bytes'], (name, replayed, got)
        assert replayed['host_peak'] == got['host_peak_bytes'] and got['lower_bound_cost'] <= got['total_cost'], (name, replayed, got)
        near = checker.replay(load(model, finer), steps, link=rate / 1e9)['cost']      # as the tool is used by hand
        assert abs(near - got['total_cost']) <= 1e-6 * got['total_cost'] + len(steps), (name, near, got)
        alone = json.loads(planned(model, '--budget', budget, '--work', '30000000', '--json', '-'))
        assert got['total_cost'] <= finer * alone['total_cost'], (name, got, alone)
        spilled += got['host_peak_bytes'] > 0
    assert spilled >= 4
    planned(*args, '--svg', path('host.svg'), '--html', path('host.html'))
    xml.parse(path('host.svg')); check_page(path('host.html'))
    out = planned(*args, '--explain')
    lines = out[out.index('The peak of'):].splitlines()
    assert int(lines[0].split()[3]) == sum(int(line.split()[0]) for line in lines[1:lines.index('')]), out
    return '%d plans' % len(cases)

def updates_are_planned():
    # Of 600 bytes of weights the second half's gradients are 200: a fused update frees them before the 400 of the first.
    text = '''tlg 1
node 0 x input fwd=0 bwd=0 out=64 needs=none in=-
node 1 a dense fwd=10 bwd=20 out=64 needs=in in=0 param=400
node 2 b dense fwd=10 bwd=20 out=64 needs=in in=1 param=200
node 3 loss ce fwd=1 bwd=1 out=4 needs=in in=2
'''
    model = write('weights.tlg', text)
    def keeps_all(*more):
        got = json.loads(planned(model, *more, '--json', '-'))
        return got['nodes'], got['keep_all_peak_bytes'], got['base_cost']
    assert keeps_all() == (4, 64 + 64 + 64 + 64 + 4, 62)
    for moments, name in enumerate(('sgd', 'momentum', 'adamw')):
        owned = 64 + 600 * (1 + moments)
        assert keeps_all('--optimizer', name) == (6, owned + 64 + 400, 62), name
        assert keeps_all('--optimizer', name, '--updates', 'end') == (6, owned + 64 + 600, 62), name
        timed = '--optimizer', name, '--update-rate', '1GB/s', '--cost-unit', 'ns'
        assert keeps_all(*timed)[2] == 62 + 600 * (3 + 2 * moments), name
        assert keeps_all(*timed, '--updates', 'end', '--clip')[::2] == (7, 62 + 600 * (6 + 2 * moments)), name
    graph = write('states.tlg', text.replace('tlg 1', 'tlg 2').replace('in=0 param=400', 'in=0,4').replace('node 1', 'node 2')
                  .replace('node 2 b', 'node 4 b').replace('in=1 param=200', 'in=2,3').replace('in=0,4', 'in=0,1')
                  .replace('node 3 loss', 'node 5 loss').replace('needs=in in=2\n', 'needs=in in=4\nend 6\n')
                  .replace('node 2 a', 'state 1 p momentum w=400 m=400\nnode 2 a').replace('node 4 b', 'state 3 q momentum w=200 m=200\nnode 4 b'))
    for where, gradients in ('fused', 400), ('end', 600):
        got = json.loads(planned(graph, '--updates', where, '--json', '-'))
        assert (got['nodes'], got['keep_all_peak_bytes']) == (6, 64 + 1200 + 64 + gradients), (where, got)
    schedule = planned(model, '--optimizer', 'adamw', '--schedule', '-').split('\n')
    assert [line for line in schedule if line.startswith('B ')] == ['B 5', 'B 4', 'B 3', 'B 2', 'B 1'], schedule
    out = planned(model, '--optimizer', 'adamw', '--budget', '2328', '--explain')
    assert 'By kind: state 77.3 %, gradient 19.9 %, graph input 2.7 %\n' in out, out
    refused(1, ['--optimizer lion', 'sgd, momentum or adamw'], model, '--optimizer', 'lion')
    refused(1, ['--updates late', 'fused or end'], model, '--updates', 'late')
    refused(1, ['--clip', '--updates end'], model, '--optimizer', 'sgd', '--clip')
    refused(1, ['--update-rate', '--optimizer'], model, '--update-rate', '1GB/s')
    refused(1, ['--inference'], model, '--optimizer', 'sgd', '--inference')
    refused(1, ['--states', '--optimizer'], model, '--optimizer', 'sgd', '--states', '2', '--compile', '--budget', '9KB')
    refused(1, ['no node has weights'], MODEL, '--optimizer', 'sgd')
    refused(1, ['no node has weights', '--updates'], MODEL, '--updates', 'end')

def gradients_in_pieces_are_named():
    model = write('pieces.tlg', '''tlg 2
node 0 x input fwd=0 bwd=0 out=64 needs=none in=-
state 1 p momentum w=400 m=400 upd=5 wrows=100
node 2 a dense fwd=10 bwd=20 out=64 needs=in in=0,1
state 3 q sgd w=300 wrows=3
node 4 b dense fwd=10 bwd=20 out=64 needs=in in=2,3
node 5 c dense fwd=10 bwd=20 out=64 needs=in in=4,3
state 6 r sgd w=200
node 7 d dense fwd=10 bwd=20 out=64 needs=in in=5,6
node 8 loss ce fwd=1 bwd=1 out=4 needs=in in=7
end 9
''')
    whole = 'gradients of states in pieces', 'q is whole, 300 bytes: several nodes read its weight', 'r is whole, 200 bytes: it has no rows (wrows)'
    out = planned(model, '--pieces', '90', '--piece-cost', '3')
    assert '1 of 3 gradients of states in pieces of at most 88 bytes: 9 calls more\n  %s\n  %s\n' % whole[1:] in out, out
    out = planned(model, '--pieces', '250')
    assert '1 of 3 gradients of states in pieces of at most 248 bytes: 3 calls more\n  %s\n' % whole[1] in out and whole[2] not in out, out
    out = planned(model, '--pieces', '90', '--align', '1024')
    assert '0 of 3 gradients of states in pieces\n  p is whole, 400 bytes: pieces of it would take no fewer bytes\n' in out, out
    got = json.loads(planned(model, '--pieces', '90', '--piece-cost', '3', '--json', '-'))
    assert got['pieces'] == [{'state': 'p', 'gradient_bytes': 400, 'piece_bytes': 88, 'count': 5}, {'state': 'q', 'gradient_bytes': 300, 'piece_bytes': 300, 'count': 1},
                             {'state': 'r', 'gradient_bytes': 200, 'piece_bytes': 200, 'count': 1}], got['pieces']
    plain = json.loads(planned(model, '--json', '-'))
    assert got['total_cost'] == plain['total_cost'] + 9 * 3 and got['base_cost'] == plain['base_cost'] and 'pieces' not in plain
    assert abs(got['cost_ratio'] * got['base_cost'] - got['total_cost']) < 1e-3
    alone = write('alone.tlg', '''tlg 2
node 0 x input fwd=0 bwd=0 out=64 needs=none in=-
state 1 p sgd w=400 wrows=100
node 2 a dense fwd=10 bwd=20 out=64 needs=in in=0,1
node 3 loss ce fwd=1 bwd=1 out=4 needs=in in=2
end 4
''')
    for budget, pieces in (64 + 2 * 400 + 64, 1), (64 + 2 * 400 + 63, 2), (64 + 400 + 2 * 64 + 4, 6):
        chosen = json.loads(planned(alone, '--pieces', 'auto', '--piece-cost', '3', '--budget', str(budget), '--json', '-'))
        assert chosen['peak_bytes'] <= budget and chosen['pieces'][0]['count'] == pieces, (budget, chosen['pieces'])
        assert chosen['total_cost'] == 32 + (2 * pieces - 1) * 3 * (pieces > 1), chosen['total_cost']
    refused(1, ['--piece-cost', '--pieces'], model, '--piece-cost', '3')
    refused(1, ['--pieces auto', '--budget'], model, '--pieces', 'auto')
    refused(1, ['--inference', '--pieces'], model, '--inference', '--pieces', '90')

ROWS = """tlg 2
node 0 image input fwd=0 bwd=0 out=16384 needs=none in=- rows=64@0 fixed%s
node 1 a conv fwd=9 bwd=0 out=16384 needs=none in=0 grad=no rows=64@0 rin=3/1/1 fixed
node 2 b conv fwd=9 bwd=0 out=16384 needs=none in=1 grad=no rows=64@0 rin=3/1/1 fixed
node 3 c conv fwd=9 bwd=0 out=%s needs=none in=2 grad=no keep rows=%s@0 rin=%s fixed
end 4
"""

def regions_of_rows_are_planned():
    """By hand: a row has 256 bytes; a ring before a window of three rows has three."""
    rows = 256
    def report(*options, text=ROWS % ('', '16384', '64', '3/1/1')):
        with open(os.path.join(folder, 'rows.tlg'), 'w') as f: f.write(text)
        done = run(os.path.join(folder, 'rows.tlg'), '--inference', '--rows', '--json', '-', *options)
        assert done[0] == 0, done
        return json.loads(done[1])
    least = report()
    assert least['rows']['peak_bytes'] == least['peak_bytes'] == least['arena_bytes'] == 2 * 16384 + 6 * rows, least['rows']
    assert least['rows']['whole_peak_bytes'] == 3 * 16384 and least['rows']['call_count'] == 3 * 64
    assert [(m['node'], m['ring_rows'], m['block_rows']) for m in least['rows']['regions'][0]['members']] == [('a', 3, 1), ('b', 3, 1), ('c', 0, 1)]
    more = report('--budget', str(2 * 16384 + 10 * rows))       # rings of five rows hold calls of two
    assert more['rows']['call_count'] == 3 * 32 and more['peak_bytes'] == 2 * 16384 + 10 * rows, more['rows']
    assert report('--slots', 'conv')['peak_bytes'] == 2 * 16384 + 6 * rows      # its row is read in windows: no slot
    stream = report(text=ROWS % (' stream', '16384', '64', '3/1/1'))
    assert stream['peak_bytes'] == 16384 + 9 * rows and stream['rows']['regions'][0]['members'][0]['node'] == 'image', stream['rows']
    thin = report('--slots', 'conv', text=ROWS % ('', '16384', '64', '1:1'))
    assert thin['peak_bytes'] == 2 * 16384 + 3 * rows, thin['rows']           # b stands in slots of a's ring
    code = os.path.join(folder, 'code_of_rows')
    os.mkdir(code)
    streamed = report('--align', '8', '--c-code', 'net', '-o', code, text=ROWS % (' stream', '16384', '64', '3/1/1'))
    header = open(os.path.join(code, 'net.h')).read()
    assert '#define NET_BANK_0_BYTES %d\n' % streamed['arena_bytes'] in header and 'NET_INPUT' not in header
    assert 'void net_load_rows(int32_t node, const net_operand *out0, int32_t first, int32_t count);\n' in header
    assert 'void net_conv_forward(int32_t node, const net_operand *out0, const net_operand *in0, int32_t first, int32_t count);\n' in header
    subprocess.run([os.environ.get('CC', 'cc'), '-std=c99', '-Wall', '-Wextra', '-Wpedantic', '-Wconversion', '-Werror', '-ffreestanding', '-c',
                    '-o', os.path.join(code, 'net.o'), os.path.join(code, 'net.c')], check=True, timeout=300)
    refused(1, ['--rows'], MODEL, '--rows')
    refused(1, ['--slots'], MODEL, '--inference', '--slots', 'conv')
    refused(1, ['--rows'], MODEL, '--inference', '--rows', '--pareto')
    with open(os.path.join(folder, 'rows.tlg'), 'w') as f: f.write(ROWS % ('', '8192', '32', '3/4/1'))
    refused(1, ['node 3 (c)', 'rin'], os.path.join(folder, 'rows.tlg'), '--inference', '--rows')

# The prototype's figures: what a step costs at shares of keep-all, with the best regions of each, and the least budget.
ROW_MODELS = [('gpt2', 8192, 12, {60: 1.004, 40: 1.017, 25: 1.024, 15: 1.095, 10: 1.131, 6: 1.170, 4: 1.221}, 2.1),
              ('llama1b', 8192, 1, {60: 1.000, 40: 1.039, 25: 1.108, 15: 1.152, 10: 1.175, 6: 1.206, 4: 1.315}, 2.3)]

def declare_rows(name, tokens, heads):
    done = subprocess.run([sys.executable, os.path.join(HERE, 'declare_rows.py'), reference('notes/prototypes/rows/%s.tlg' % name),
                           '--tokens', str(tokens), '--heads', str(heads)], capture_output=True, text=True, check=True)
    return write(name + '_rows.tlg', done.stdout)

def steps_in_blocks_of_rows_are_as_cheap_as_the_prototype():
    figures = []
    for name, tokens, heads, costs, least in ROW_MODELS:
        model = declare_rows(name, tokens, heads)
        for share, cost in costs.items():
            got = json.loads(planned(model, '--rows', '--live', '--budget', '%d%%' % share, '--json', '-'))
            assert got['peak_bytes'] <= got['budget_bytes'] and got['cost_ratio'] <= cost + 0.0005, (name, share, got['cost_ratio'])
            assert got['lower_bound_cost'] <= got['total_cost'] and got['base_cost'] == got['rows']['whole_cost']
            figures.append('%s %d%% %.4f (%.4f) %.1fs' % (name, share, got['cost_ratio'], got['lower_bound_cost'] / got['base_cost'], got['seconds']))
        code, out, err = run(model, '--rows', '--live', '--budget', '1%', '--json', '-')
        got = json.loads(out)
        assert code == 2 and 'because of node' in err, err
        assert got['minimal_budget_bytes'] * 100 <= least * got['keep_all_peak_bytes'], (name, got['minimal_budget_bytes'])
        assert json.loads(planned(model, '--rows', '--live', '--budget', str(got['minimal_budget_bytes']), '--json', '-'))['peak_bytes'] == got['minimal_budget_bytes']
        figures.append('least %.2f%%' % (100 * got['minimal_budget_bytes'] / got['keep_all_peak_bytes']))
    return ', '.join(figures)

TRAINED_ROWS = """tlg 2
node 0 x input fwd=0 bwd=0 out=400 needs=none in=- rows=10@0
node 1 up op fwd=10 bwd=20 out=4000 needs=none in=0 rows=10@0 rin=1:1 ordered
node 2 act op fwd=2 bwd=2 out=4000 needs=in in=1 rows=10@0 rin=1:1
node 3 down op fwd=10 bwd=20 out=400 needs=in in=2 rows=10@0 rin=1:1 ordered
node 4 loss op fwd=1 bwd=1 out=4 needs=none in=3 keep
end 5
"""

def steps_are_cut_into_blocks_of_rows():
    """By hand: two of ten rows of up, act and the gradients of both are 4 x 800 bytes."""
    model = write('trained.tlg', TRAINED_ROWS)
    whole = json.loads(planned(model, '--json', '-'))
    got = json.loads(planned(model, '--rows', '--live', '--budget', '4100', '--json', '-', '--schedule', path('s')))
    rows = got['rows']
    assert got['nodes'] == 3 and len(rows['regions']) == 1 and rows['regions'][0]['region'] == 'down', rows
    assert [(m['node'], m['again']) for m in rows['regions'][0]['members']] == [('up', True), ('act', True), ('down', False)], rows
    assert got['total_cost'] == whole['base_cost'] + 12 == got['lower_bound_cost'] and got['peak_bytes'] <= 4100, got
    assert [line for line in open(path('s')).read().split('\n') if line[:1] in 'FB' and line] == ['F 1', 'F 2', 'B 2', 'B 1'], open(path('s')).read()
    out = planned(model, '--rows', '--live', '--budget', '4100')
    assert '1 region of rows' in out and 'up to down: 3 nodes' in out, out
    blocks = rows['regions'][0]['block_count']
    paid = json.loads(planned(model, '--rows', '--live', '--budget', '4100', '--piece-cost', '3', '--json', '-'))
    assert paid['rows']['regions'][0]['block_count'] <= blocks
    assert paid['total_cost'] == whole['base_cost'] + 12 + 8 * 3 * (paid['rows']['regions'][0]['block_count'] - 1), paid
    code, out, err = run(model, '--rows', '--live', '--budget', '100', '--json', '-')
    assert code == 2 and err.count('\n') == 1 and 'of all regions of rows that were tried' in err, err
    planned(model, '--rows', '--live', '--budget', str(json.loads(out)['minimal_budget_bytes']))
    refused(1, ['--rows', '--budget'], model, '--rows')
    batch = write('batch.tlg', TRAINED_ROWS.replace('tlg 2\n', 'tlg 2\nbatch 10\n').replace('keep\nend', 'keep fixed\nend'))
    for more in ['--live'], ['--compile']:
        parts = json.loads(planned(batch, '--rows', '--split', '--budget', '1300', '--json', '-', *more))
        one = json.loads(run(batch, '--rows', '--live', '--budget', '1300', '--json', '-')[1])
        assert parts['rows']['part_count'] > 1 and parts['peak_bytes'] <= 1300 and 'total_cost' not in one, (parts, one)
        assert parts['total_cost'] >= parts['base_cost'] == whole['base_cost'] and parts['total_cost'] % parts['rows']['part_count'] == 0
    assert json.loads(planned(batch, '--rows', '--split', '--live', '--budget', '100%', '--json', '-'))['rows']['part_count'] == 1
    refused(1, ['--split', 'batch'], model, '--rows', '--split', '--budget', '50%')
    refused(1, ['--rows', 'formats'], batch, '--compile', '--rows', '--loss', '0.1', '--budget', '50%')
    refused(1, ['--rows', '--recommend'], batch, '--recommend', '--rows', '--budget', '50%')
    refused(1, ['--rows', '--split'], batch, '--inference', '--rows', '--split')
    for more in ['--slots', 'op'], ['--order'], ['--policy', 'revolve'], ['--precision', 'loss=1,training'], ['--c-code', 'n', '-o', folder]:
        refused(1, [more[0]], model, '--rows', '--budget', '50%', *more)
    refused(1, ['--piece-cost'], model, '--inference', '--rows', '--piece-cost', '3')

def inputs_die():
    # x is read by a alone: 100 + 40, and then 40 + 60, where it stays 200; y by the last node.
    text = '''tlg 2
node 0 x input fwd=0 bwd=0 out=100 needs=none in=-
node 1 a op fwd=1 bwd=1 out=40 needs=none in=0
node 2 b op fwd=1 bwd=1 out=60 needs=none in=1
node 3 c op fwd=1 bwd=1 out=60 needs=none in=2
end 4
'''
    model, marked = write('inputs.tlg', text), write('marked.tlg', text.replace('needs=none in=-', 'needs=none in=- dies'))
    def peak(*more): return json.loads(planned(*more, '--inference', '--json', '-'))['keep_all_peak_bytes']
    assert peak(model) == 100 + 120
    assert peak(model, '--inputs-die') == peak(marked) == 100 + 40
    assert [line for line in planned(marked, '--inference', '--schedule', '-').split('\n') if line][:2] == ['F 1', 'D 0.0']
    header = os.path.join(folder, 'net.h')
    planned(marked, '--inference', '--align', '4', '--budget', '140', '--c-code=calls', 'net', '-o', folder)
    with open(header) as file: text = file.read()
    assert '#define NET_BANK_0_BYTES 140\n' in text and '#define NET_INPUT_X_BYTES 100\n' in text, text
    refused(1, ['--inputs-die', '--ranks'], model, '--inputs-die', '--ranks', '2')

def long_units_of_cost_wait_no_longer():
    """A chain whose copies take a fraction of its unit of cost: the same plan, whatever the unit."""
    def chain(scale):
        return 'tlg 1\nnode 0 x input fwd=0 bwd=0 out=1000000 needs=none in=-\n' + ''.join(
            'node %d n%d op fwd=%d bwd=%d out=1000000 needs=in in=%d\n' % (k, k, 3 * scale, 6 * scale, k - 1) for k in range(1, 7))
    costs = []
    for unit, scale in (('ms', 1), ('us', 1000), ('ns', 10**6), ('flop@1kFLOPS', 1), ('flop@1MFLOPS', 1000), ('flop@1GFLOPS', 10**6)):
        how = ['--budget', '4MB', '--host-budget', '100MB', '--link', '12GB/s', '--cost-unit', unit]
        got = json.loads(planned(write('unit.tlg', chain(scale)), *how, '--json', '-'))
        assert ' (54.33 ms)' in planned(path('unit.tlg'), *how), unit
        costs.append((got['total_cost'], got['base_cost'], got['lower_bound_cost']))
    assert len(set(costs)) == 1 and costs[0][:2] == (54333336, 54 * 10**6), costs
    refused(1, ['--cost-unit ms', 'node 3', '64 bits'], write('unit.tlg', chain(10**12)), *how[:-1], 'ms')

def compressed_copies_are_exact_and_pay():
    checker = load_checker()
    sizes = {'f16': lambda n: 2 * n, 'bf16': lambda n: 2 * n, 'q8': lambda n: n + 4 * -(-n // 32)}
    alone = json.loads(planned(MODEL, '--budget', '40%', '--work', '30000000', '--json', '-'))
    for codec in sizes:
        args = [MODEL, '--budget', '40%', '--codec', codec, '--work', '30000000']
        got = json.loads(planned(*args, '--json', '-', '--schedule', path('schedule')))
        with open(path('schedule')) as file: lines = file.read().splitlines()
        replayed = checker.replay(checker.load(MODEL), list(checker.read_steps(path('schedule'))))
        assert replayed['cost'] == got['total_cost'] < alone['total_cost'], (codec, got, alone)   # conversions that take no time
        assert replayed['peak'] == got['peak_bytes'] <= got['budget_bytes'], (codec, replayed, got)
        assert sum(line.startswith('C ') for line in lines) == sum(line.startswith('X ') for line in lines) > 0, codec
        assert all(line.split()[2] == codec for line in lines if line.startswith('C ')), codec
    slow = json.loads(planned(*args, '--codec-rate', '1MB/s', '--cost-unit', 'ns', '--json', '-'))
    assert slow['total_cost'] == alone['total_cost'], (slow, alone)                                # nothing is compressed then
    both = compiled(MODEL, '--compile', '--budget', '40%', '--codec', 'q8', '--work', '30000000')
    assert both[1]['choice']['compressed_count'] > 0, both

def an_explanation_adds_up():
    out = planned(MODEL, '--budget', '45%', '--explain', '--schedule', path('schedule'), '--svg', path('steps.svg'))
    lines = out.splitlines()
    step = re.search(r' at step (\d+), ', open(path('steps.svg')).read())      # counted from 0, as in tables and errors
    assert any('step %s, the ' % step.group(1) in line for line in lines if line.startswith('The peak of')), out
    letter = {'forward of': 'F', 'backward of': 'B', 'forward with saved state of': 'S'}
    words = re.search(r'step (\d+), the (forward of|backward of|forward with saved state of) ', out)
    with open(path('schedule')) as file: assert file.read().splitlines()[int(words.group(1))].split()[0] == letter[words.group(2)], out
    at = next(k for k, line in enumerate(lines) if line.startswith('The peak of'))
    peak, total = int(lines[at].split()[3]), 0
    for line in lines[at + 1:]:
        if not line.strip(): break
        total += int(line.split()[0])
    assert peak == total, out
    shares = [float(share) for share in re.findall(r' ([0-9.]+) %', next(line for line in lines if line.startswith('By kind: ')))]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < 0.1 * len(shares), shares
    again = next(line for line in lines if 'run again' in line)
    made = next(line for line in lines if 'made again' in line and 'steps' in line)
    assert int(again.split()[0]) > 0 and int(made.split('of these ')[1].split()[0]) >= int(again.split()[0]), out
    assert 'over the budget' in out and '1.00 MiB more: cost' in out, out

# -- curves --

def curves_fall_and_bounds_stay_below():
    got = json.loads(planned(MODEL, '--pareto', '--work', '5000000', '--json', '-'))
    points = got['points']
    assert points[0]['peak_bytes'] == got['minimal_budget_bytes'] == 10879104 and points[-1]['peak_bytes'] <= got['keep_all_peak_bytes']
    assert len(points) > 10
    for left, right in zip(points, points[1:]):
        assert left['peak_bytes'] < right['peak_bytes'] and left['total_cost'] > right['total_cost'], (left, right)
        assert left['lower_bound_cost'] >= right['lower_bound_cost'], (left, right)
    for point in points:
        assert point['lower_bound_cost'] <= point['total_cost'] and point['peak_bytes'] <= point['budget_bytes'], point
    # Little work: dearer plans, lower bounds, and none of these above what more work has found.
    weak = json.loads(planned(MODEL, '--pareto', '--work', '1', '--json', '-'))['points']
    for point in weak:
        known = min(p['total_cost'] for p in points if p['peak_bytes'] <= point['budget_bytes'])
        assert point['lower_bound_cost'] <= known, (point, known)
    assert any(point['lower_bound_cost'] < point['total_cost'] for point in weak)
    again = json.loads(planned(MODEL, '--pareto', '--work', '5000000', '--json', '-'))
    assert again['points'] == points and again['work'] == got['work']

def small_curves_hold_the_optimum():
    rows = list(csv.DictReader(open(reference('small/optimum.csv'))))
    models = sorted({row['model'] for row in rows})[::every]
    for model in models:
        exact = [(int(r['peak_bytes']), int(r['optimum_cost'])) for r in rows
                 if r['model'] == model and r['mode'] == 'training' and r['optimum_cost'] != 'infeasible']
        got = json.loads(planned(reference('small/%s.tlg' % model), '--pareto', '--json', '-'))
        found = [(p['peak_bytes'], p['total_cost']) for p in got['points']]
        kept = [pair for pair in exact if pair[0] <= got['keep_all_peak_bytes']]
        assert found == kept, (model, found, exact)
    return '%d models' % len(models)

# -- pictures and pages --

class Balance(html.parser.HTMLParser):
    """Every tag is closed, nothing comes from elsewhere."""
    def __init__(self):
        super().__init__(); self.open = []; self.scripts = 0; self.text = ''
    def handle_starttag(self, tag, attrs):
        if tag == 'script': self.scripts += 1
        for name, value in attrs: assert name not in ('src', 'href') and not name.startswith('on'), (tag, name)
        if tag not in ('meta', 'br'): self.open.append(tag)
    def handle_endtag(self, tag): assert self.open and self.open.pop() == tag, (tag, self.getpos())
    def handle_data(self, data): self.text += data

def check_page(file):
    with open(file, encoding='utf-8') as source: page = source.read()
    balance = Balance()
    balance.feed(page); balance.close()
    assert not balance.open and balance.scripts == 1, balance.open
    for word in ('http:', 'https:', 'import', 'fetch('): assert word not in page.replace('http://www.w3.org/2000/svg', ''), word
    script = page.split('<script>')[1].split('</script>')[0]
    if shutil.which('node'): subprocess.run(['node', '--check', '-'], input=script, text=True, check=True, timeout=60)
    assert 'prefers-color-scheme:dark' in page and 'keydown' in page and 'pointermove' in page
    return page

def pictures_are_xml():
    planned(MODEL, '--pareto', '--work', '1000000', '--svg', path('curve.svg'))
    root = xml.parse(path('curve.svg')).getroot()
    assert root.tag == '{http://www.w3.org/2000/svg}svg'
    assert len(root.findall('.//{http://www.w3.org/2000/svg}circle')) > 10
    planned(MODEL, '--budget', '50%', '--svg', path('plan.svg'))
    root = xml.parse(path('plan.svg')).getroot()
    assert root.tag == '{http://www.w3.org/2000/svg}svg' and len(list(root.iter())) > 50
    assert 's3b2_relu2' in ''.join(root.itertext())

def pages_are_whole():
    hostile = '<script>alert("&")</script>'
    with open(MODEL) as file: text = file.read()
    name = write('a&b.tlg', text.replace('s1b1_conv1', 'x"<b>&</script>'))
    planned(name, '--budget', '50%', '--work', '1000000', '--html', path('plan.html'))
    page = check_page(path('plan.html'))
    assert '<b>' not in page and 'a&#38;b' in page and 'x\\"\\u003cb\\u003e\\u0026' in page
    planned(name, '--pareto', '--work', '1000000', '--html', path('curve.html'))
    check_page(path('curve.html'))
    hostile_name = path(hostile.replace('/', ':') + '.tlg')
    with open(hostile_name, 'w') as file: file.write(text)
    for more in (['--budget', '50%'], ['--pareto']):
        planned(hostile_name, *more, '--work', '100000', '--html', path('page.html'))
        check_page(path('page.html'))

# -- precisions: evaluated here on their own, from the .tlg text and the table of profiles --

FORMATS = {'f32': ('f32', 4), 'f16': ('f16', 2), 'bf16': ('bf16', 2), 'i16': ('i16', 2), 'i8': ('i8', 1), 'i8-channel': ('i8', 1),
           'w8a16': ('i16', 1), 'dynamic': ('f32', 1), 'fake': ('f32', 4), 'w4a8': ('i8', Fraction(1, 2))}     # of tensors; bytes of a weight
WIDTH = {'f32': 4, 'f16': 2, 'bf16': 2, 'i16': 2, 'i8': 1}
PRECISION_KEYS = {'model', 'nodes', 'keep_all_peak_bytes', 'f32_peak_bytes', 'precision', 'work', 'seconds'}

class Node: pass

def read_tlg(file):
    nodes = []
    for line in open(file):
        words = line.split('#')[0].split()
        if not words or words[0] != 'node': continue
        node, values = Node(), dict(word.split('=', 1) for word in words[4:] if '=' in word)
        node.name, node.op, node.keep = words[2], words[3], 'keep' in words
        node.fwd, node.bwd, node.param = (int(values.get(key, 0)) for key in ('fwd', 'bwd', 'param'))
        node.grad = node.op != 'input' and values.get('grad') != 'no'
        node.out = [int(size) for size in values['out'].split(',')]
        node.reads = [] if values['in'] == '-' else [tuple(int(part) for part in (word + '.0').split('.')[:2]) for word in values['in'].split(',')]
        nodes.append(node)
    return nodes

def words():
    """--profiles FILE: the default table, which has no speed-ups, with those that word lengths promise."""
    gains = {'f16': 2, 'bf16': 2, 'i16': 2, 'i8': 4, 'i8-channel': 4, 'w8a16': 2, 'dynamic': 3, 'w4a8': 5}
    def gain(word):
        scheme, _, loss = word.partition('=')
        return '%s=%s:%d' % (scheme, loss.split(':')[0], gains[scheme]) if scheme in gains else word
    lines = [' '.join(map(gain, line.split())) if line.startswith('profile ') else line for line in planned('--default-profiles').splitlines()]
    return ['--profiles', write('words.profiles', '\n'.join(lines) + '\n')]

def read_profiles(text):
    rows = []
    for line in text.splitlines():
        words = line.split('#')[0].split()
        if not words or words[0] != 'profile': continue
        row = dict(op=words[1].lower(), device=None, least=0, most=0, sensitive=False, schemes={})
        for word in words[2:]:
            key, _, value = word.partition('=')
            if key in ('least', 'most'): row[key] = int(value)
            elif key == 'device': row[key] = value
            elif key == 'sensitive': row[key] = True
            elif key != 'best': row['schemes'][key] = tuple(Fraction(float(number)) for number in value.split(':'))
        rows.append(row)
    return rows

class Evaluation:
    """What a choice costs and loses: calls, conversions of each tensor to each format that is wanted, bytes."""
    def __init__(self, nodes, rows, allowed, training=False, sensitive=False, unknown=False, any_result=False, measured={}, moved=None, f16=False):
        self.f16 = f16
        self.nodes, self.training, self.any_result, self.moved = nodes, training, any_result, moved
        self.options, self.readers = [], {}
        for i, node in enumerate(nodes):
            for tensor in node.reads: self.readers.setdefault(tensor, []).append(i)
            self.options.append(self.options_of(node, rows, allowed, sensitive, unknown, measured.get(node.name, {})))
    def row_of(self, node, rows):
        elements = -(-node.out[0] // 4)
        def first(op):
            for row in rows:
                if row['op'] == op and not row['device'] and row['least'] <= elements and (not row['most'] or elements <= row['most']): return row
        whole = first(node.op.lower())
        if whole: return whole, True
        parts = [first(part) for part in node.op.lower().split('+')]
        if all(parts): return next((row for row in parts if row['sensitive']), parts[0]), True
        return first('*'), False
    def options_of(self, node, rows, allowed, sensitive, unknown, measured):
        """scheme -> (cost, loss)"""
        base = node.fwd + (node.bwd if self.training else 0)
        if node.op == 'input': return {'f32': (0, Fraction(0))}
        row, known = self.row_of(node, rows)
        found = {'f32': (base, Fraction(0))} if 'f32' in allowed else {}
        for scheme, (loss, speedup) in (row['schemes'] if row and (known or unknown) else {}).items():
            if scheme == 'f32' or scheme not in allowed: continue
            if self.training and scheme not in (('f16', 'bf16') if self.f16 else ('bf16',)): continue
            if row['sensitive'] and not sensitive and (WIDTH[FORMATS[scheme][0]] < 2 or FORMATS[scheme][1] < 2 or scheme == 'fake'): continue
            cost = -(-base // speedup)
            found[scheme] = (cost, loss)
        for scheme, (loss, cost) in measured.items():
            if scheme in found: found[scheme] = (found[scheme][0] if cost is None else cost, found[scheme][1] if loss is None else loss)
        return found
    def conversions(self, schemes):
        """(node, output, from, to) of each."""
        for i, node in enumerate(self.nodes):
            own = FORMATS[schemes[i]][0]
            for k in range(len(node.out)):
                wanted = {FORMATS[schemes[reader]][0] for reader in self.readers.get((i, k), [])}
                if node.keep and not self.any_result: wanted.add('f32')
                for to in sorted(wanted - {own}): yield i, k, own, to
    def price(self, i, k, own, to):
        size = self.nodes[i].out[k]
        elements = -(-size // 4)
        cost = elements if not self.moved else -(-elements * (WIDTH[own] + WIDTH[to]) * 10**9 // self.moved)
        back = self.training and self.nodes[i].grad and any(self.nodes[reader].grad for reader in self.readers.get((i, k), [i]))
        return cost * (2 if back else 1)        # in training the gradient comes back the same way, also of a result that nobody reads
    def cost(self, schemes):
        converted = sum(self.price(*one) for one in self.conversions(schemes))
        return sum(self.options[i][scheme][0] for i, scheme in enumerate(schemes)) + converted, converted
    def loss(self, schemes): return sum(self.options[i][scheme][1] for i, scheme in enumerate(schemes))
    def units(self, schemes, limit):
        """As the planner adds them: in parts of the limit, rounded up."""
        return sum(-(-self.options[i][scheme][1] * 2**40 // limit) if limit else (2**63 if self.options[i][scheme][1] else 0) for i, scheme in enumerate(schemes))
    def within(self, schemes, limit):
        """By the sum of doubles, as it is printed, or by whole units."""
        return sum(float(self.options[i][scheme][1]) for i, scheme in enumerate(schemes)) <= float(limit) or self.units(schemes, limit) <= 2**40
    def bytes(self, schemes):
        def size_in(size, form): return size if form == 'f32' else -(-size // 4) * WIDTH[form]
        total = sum(size_in(self.nodes[i].out[k], to) for i, k, own, to in self.conversions(schemes))
        for node, scheme in zip(self.nodes, schemes):
            form, weight = FORMATS[scheme]
            total += sum(size_in(size, form) for size in node.out) + (node.param if weight == 4 else math.ceil(-(-node.param // 4) * weight))
        return total
    def every(self): return itertools.product(*[list(options) for options in self.options])

def chosen(model, how, *more):
    got = json.loads(planned(model, '--precision', how, '--json', '-', *more))
    return got, got['precision']

def check_choice(evaluation, got, limit=None):
    """The printed choice holds what is said of it."""
    schemes = [node['scheme'] for node in got['nodes']]
    cost, converted = evaluation.cost(schemes)
    assert (cost, converted) == (got['cost'], got['conversion_cost']), (got, cost, converted)
    assert len(list(evaluation.conversions(schemes))) == got['conversion_count'], got
    assert abs(float(evaluation.loss(schemes)) - got['loss']) <= 1e-12 * got['loss'], got
    assert limit is None or evaluation.within(schemes, limit), got
    assert evaluation.bytes(schemes) == got['bytes'], (got, evaluation.bytes(schemes))
    assert got['bound_cost'] <= got['cost'] and got['base_cost'] == sum(options.get('f32', (0,))[0] for options in evaluation.options), got
    assert got['proven'] in (0, 1, True, False)
    return schemes

ALL = set(FORMATS) - {'fake', 'w4a8'}      # where schemes= says nothing

def choices_are_what_they_say():
    rows = read_profiles(planned('--default-profiles'))
    assert len(rows) > 10 and rows[-1]['op'] == '*' and all(speedup == 1 for row in rows for loss, speedup in row['schemes'].values())
    assert chosen(MODEL, 'loss=1')[1]['speedup'] == 1 and 'No one measured' in planned(MODEL, '--precision', 'loss=1')
    more = words()
    rows = read_profiles(open(more[1]).read())
    nodes = read_tlg(MODEL)
    for how, options in [('loss=0.01', {}), ('loss=1e-6', {}), ('loss=0', {}), ('loss=0.5,sensitive', dict(sensitive=True)), ('loss=0.05,unknown,any-result', dict(unknown=True, any_result=True)),
                         ('loss=0.01,training', dict(training=True)), ('loss=0.01,training,f16-fits', dict(training=True, f16=True)), ('loss=1', {}), ('loss=0.003,objective=bytes', None),
                         ('loss=0.02,memory=900GB/s', dict(moved=900 * 10**9 // 10**4))]:
        limit = Fraction(float(how.split(',')[0][5:]))
        got, precision = chosen(MODEL, how, *more)
        assert set(got) == PRECISION_KEYS, got
        if options is None: continue
        evaluation = Evaluation(nodes, rows, ALL, **options)
        check_choice(evaluation, precision, limit)
        kinds = set(node['scheme'] for node in precision['nodes'])
        if 'training' in how: assert ('f16' in kinds, 'bf16' in kinds) == (('f16-fits' in how), 'f16-fits' not in how), (how, kinds)
    only = chosen(MODEL, 'loss=1,schemes=f32+i16', *more)[1]
    assert {node['scheme'] for node in only['nodes']} == {'f32', 'i16'}, only
    grouped = chosen(MODEL, 'loss=0.3,schemes=f32+i8+w4a8', *more)[1]
    kinds = set(check_choice(Evaluation(nodes, rows, {'f32', 'i8', 'w4a8'}), grouped, Fraction(0.3)))
    assert 'w4a8' in kinds and 'w4a8' not in {node['scheme'] for node in chosen(MODEL, 'loss=0.3', *more)[1]['nodes']}, kinds
    out = planned(MODEL, '--precision', 'loss=0.01')
    for word in ('precisions for inference', 's1b1_conv1', 'all in f32', 'as chosen'): assert word in out, out
    assert 'training' in planned(MODEL, '--precision', 'loss=0.01,training')
    assert planned(MODEL, '--precision', 'loss=0.01', '--explain').count('\n') >= 2 * len(nodes)
    out = planned(MODEL, '--precision', 'loss=0.01', *more)
    assert 'proven for assumed speeds' in out and ' 4 assumed ' in out and 'speeds: assumed of' in out, out
    named = [('loss=0.01', 'performance'), ('speedup=1.5', 'accuracy'), ('loss=0.01,speedup=1.2', 'custom'), ('balanced', 'balanced')]
    for how, name in named:
        got = chosen(MODEL, how, *more)[1]
        assert got['criterion'] == name, got
        if name != 'balanced': assert got == chosen(MODEL, how + ',' + name, *more)[1], name

PROFILES = '''profiles 1
profile linear best=i8 f16=0.001:1.7 bf16=0.004:1.7 i16=0.0005:1.3 i8=0.02:3.1 i8-channel=0.01:2.9
profile conv f16=0.002:1.5 i8=0.03:2.75 dynamic=0.02:2
profile add sensitive f16=0.0001:1.25 i8=0.01:2
profile relu least=3 f16=0:2 i8=0:4
profile relu f16=0.01:1.1   # small ones
profile * i8=0.05:2 f16=0.003:1.5 w8a16=0.004:1.4
'''

def small_graphs():
    """name -> file: of reference data, else the few that are written here."""
    lines = {'chain': [('x', 'input', 0, '7', '-'), ('a', 'linear', 40, '5', '0'), ('b', 'relu', 5, '9', '1'), ('c', 'conv+relu', 90, '4', '2'), ('d', 'linear', 30, '4 keep', '3')],
             'diamond': [('x', 'input', 0, '16', '-'), ('a', 'conv', 61, '64', '0'), ('b', 'linear', 70, '24', '1'), ('c', 'relu', 13, '40', '1'), ('d', 'add', 9, '24 keep', '2,3'), ('e', 'linear', 55, '8', '4')],
             'outputs': [('x', 'input', 0, '9', '-'), ('s', 'split', 31, '40,80', '0'), ('a', 'conv', 101, '12', '1.0'), ('b', 'conv', 77, '12', '1.1'), ('c', 'add', 20, '12', '2,3,1.1')],
             'residual': [('x', 'input', 0, '100', '-'), ('a', 'linear', 300, '100', '0'), ('r', 'relu', 30, '100', '1'), ('b', 'linear', 200, '100', '2'), ('s', 'add', 25, '100', '3,1'), ('t', 'linear', 150, '20', '4')]}
    files = {}
    for name, nodes in lines.items():
        text = ''.join('node %d %s %s fwd=%d bwd=%d out=%s needs=%s in=%s\n' % (i, n, op, fwd, 0 if op == 'input' else 2 * fwd, out, 'none' if op == 'input' else 'in', reads)
                       for i, (n, op, fwd, out, reads) in enumerate(nodes))
        files[name] = write(name + '.tlg', 'tlg 1\n' + text)
    small = os.path.join(ROOT, 'small')
    for name in sorted(os.listdir(small))[::every] if os.path.isdir(small) else []:
        if name.endswith('.tlg') and sum(node.op != 'input' for node in read_tlg(os.path.join(small, name))) <= 5: files[name[:-4]] = os.path.join(small, name)
    return files

def small_choices_are_the_best():
    own = write('own.profiles', PROFILES)
    more = words()
    tables = [([], read_profiles(planned('--default-profiles'))), (more, read_profiles(open(more[1]).read())), (['--profiles', own], read_profiles(PROFILES))]
    count = 0
    for name, model in small_graphs().items():
        for more, rows in tables:
            for training in ('', ',training', ',training,f16-fits'):
                how = ',unknown' + (training or ',schemes=f32+f16+i8+i8-channel+w8a16')
                allowed = {'f32', 'f16', 'bf16'} if training else {'f32', 'f16', 'i8', 'i8-channel', 'w8a16'}
                evaluation = Evaluation(read_tlg(model), rows, allowed, training=bool(training), unknown=True, f16='fits' in training)
                best = [(evaluation.cost(schemes)[0], schemes) for schemes in evaluation.every()]
                most = max(evaluation.loss(schemes) for cost, schemes in best)
                for limit in sorted({0.0, float(most) / 9, float(most) / 3, float(most) * 0.7, float(most)}):
                    got = chosen(model, 'loss=%r%s' % (limit, how), *more)[1]
                    check_choice(evaluation, got, Fraction(limit))
                    least = min(cost for cost, schemes in best if evaluation.within(schemes, Fraction(limit)))
                    assert got['cost'] == least == got['bound_cost'] and got['proven'] and got['gap_ratio'] == 0, (name, more, how, limit, least, got)
                    count += 1
                for speedup in (1.2, 2.0):
                    within = [evaluation.loss(schemes) for cost, schemes in best if cost * Fraction(speedup) <= got['base_cost']]
                    if not within:
                        refused(2, [], model, '--precision', 'speedup=%r%s' % (speedup, how), *more)
                        continue
                    accurate = chosen(model, 'speedup=%r%s' % (speedup, how), *more)[1]
                    check_choice(evaluation, accurate)
                    assert abs(accurate['loss'] - float(min(within))) <= 1e-9 * float(most) and accurate['cost'] * speedup <= accurate['base_cost'], (name, more, how, speedup, accurate)
                    count += 1
                check_front(evaluation, best, model, 'schemes=' + '+'.join(sorted(allowed)) + ',unknown' + training, *more)
    return '%d choices' % count

def check_front(evaluation, best, model, how, *more):
    points = json.loads(planned(model, '--front', '--precision', how, '--json', '-', *more))
    assert points['complete'] and 0 <= points['knee'] < len(points['points']), points
    exact, least = [], None
    for loss, cost in sorted((evaluation.loss(schemes), cost) for cost, schemes in best):
        if least is None or cost < least: exact.append((loss, cost)); least = cost
    assert [cost for loss, cost in exact] == [point['cost'] for point in points['points']], (model, how, exact, points)
    for (loss, cost), point in zip(exact, points['points']):
        assert evaluation.cost(point['schemes'])[0] == point['cost'] == point['lower_bound_cost'] and evaluation.bytes(point['schemes']) == point['bytes'], point
        assert abs(float(loss) - point['loss']) <= 1e-9 * float(exact[-1][0]), (loss, point)

def measured_nodes_replace_their_profile():
    file = write('measured', PROFILES + 'node a i8=0.5 f16=-:3\nnode b i8=0.25:7\n')
    model = small_graphs()['chain']
    plain = read_profiles(PROFILES)
    evaluation = Evaluation(read_tlg(model), plain, ALL, measured={'a': {'i8': (Fraction(1, 2), None), 'f16': (None, 3)}, 'b': {'i8': (Fraction(1, 4), 7)}})
    best = [(evaluation.cost(schemes)[0], schemes) for schemes in evaluation.every()]
    for limit in (0.0, 0.01, 0.1, 1.0):
        got = chosen(model, 'loss=%r' % limit, '--profiles', file)[1]
        check_choice(evaluation, got, Fraction(limit))
        assert got['cost'] == min(cost for cost, schemes in best if evaluation.within(schemes, Fraction(limit))), (limit, got)
    assert chosen(model, 'loss=0.1', '--profiles', write('again', planned('--default-profiles')))[1] == chosen(model, 'loss=0.1')[1]
    with open(file) as source: text = source.read()
    code, out, err = run(model, '--precision', 'loss=0.1', '--profiles', '-', '--json', '-', text=text)
    assert code == 0 and json.loads(out)['precision'] == chosen(model, 'loss=0.1', '--profiles', file)[1], err

def machines_say_where_their_speeds_come_from():
    nodes = read_tlg(MODEL)
    text = 'profiles 1\nmachine board-7 flops=2e10 memory=8000000000 codec=2000000000\nprofile conv2d i8=0.001:1.5 f16=0.001:1.1\n' \
           'machine -\nprofile linear i8=0.001:2\n'
    file = write('board.profiles', text)
    got = chosen(MODEL, 'loss=1', '--profiles', file)[1]
    convs, linears = sum(node.op == 'conv2d' for node in nodes), sum(node.op == 'linear' for node in nodes)
    assert (got['speeds']['measured'], got['speeds']['assumed'], got['speeds']['measured_on'], got['speeds']['conversions']) == (convs, linears, 'board-7', 'device'), got
    sources = {node['scheme']: node['speed_source'] for node in got['nodes'] if node['op'] == 'conv2d'}
    assert set(sources.values()) <= {'measured', 'exact'} and 'measured' in sources.values(), sources
    # a unit of cost is a FLOP at the machine's speed: 5 bytes an element at 8 GB/s are 5 x 20 / 8 of them
    evaluation = Evaluation(nodes, read_profiles(text), ALL, moved=4 * 10**8)
    check_choice(evaluation, chosen(MODEL, 'loss=1,schemes=f32+i8', '--profiles', file)[1])
    slow = chosen(MODEL, 'loss=1,memory=1GB/s,schemes=f32+i8', '--profiles', file, '--cost-unit', 'flop@20GFLOPS')[1]
    check_choice(Evaluation(nodes, read_profiles(text), ALL, moved=5 * 10**7), slow)  # the word counts before the file
    assert 'measured on board-7 of %d' % convs in planned(MODEL, '--front', '--profiles', file)
    assert json.loads(planned(MODEL, '--front', '--profiles', file, '--json', '-'))['speeds'] == got['speeds']
    shipped = os.path.join(HERE, '..', 'examples', 'x86-64.profiles')
    for model in [MODEL] + sorted(small_graphs().values())[:5]:
        got = chosen(model, 'loss=1', '--profiles', shipped)[1]
        assert got['speeds']['measured_on'].startswith('x86-64') or not got['speeds']['measured'], got
    assert chosen(MODEL, 'loss=1', '--profiles', shipped)[1]['speeds']['measured'] >= convs
    for line, rule in (('machine', 'name'), ('machine a memory', 'at least 1'), ('machine a memory=0', 'at least 1'), ('machine a speed=1', 'flops='), ('machine a codec=x', 'at least 1'), ('machine a flops=1e19', 'at least 1')):
        refused(1, ['line 2', rule], MODEL, '--precision', 'loss=1', '--profiles', write('bad.profiles', 'profiles 1\n%s\n' % line))

def no_rounding_exceeds_a_limit():
    """In doubles 0.1 + 0.2 is more than 0.3, by less than a part in 10^16."""
    model = write('two.tlg', head('node 0 x input fwd=0 bwd=0 out=400 needs=none in=-', 'node 1 a conv fwd=90000 bwd=0 out=400 needs=in in=0', 'node 2 b linear fwd=80000 bwd=0 out=400 needs=in in=1'))
    file = write('two.profiles', 'profiles 1\nprofile conv i8=0.1:2\nprofile linear i8=0.2:2\n')
    assert chosen(model, 'loss=0.3', '--profiles', file)[1]['scheme_counts']['i8'] == 1
    assert chosen(model, 'loss=0.30000000000000005', '--profiles', file)[1]['loss'] <= 0.30000000000000005
    assert chosen(model, 'loss=0.3000001', '--profiles', file)[1]['scheme_counts']['i8'] == 2

def choices_are_planned_in_memory():
    more = words()
    got, precision = chosen(MODEL, 'loss=0.2,unknown,sensitive', *more, '--budget', '2MiB', '--schedule', path('s'), '--svg', path('s.svg'), '--html', path('s.html'))
    assert KEYS <= set(got) and got['peak_bytes'] <= got['budget_bytes'] == 2 << 20, got
    assert got['nodes'] == 52 + precision['conversion_count'] and got['base_cost'] == precision['cost'], got
    assert got['keep_all_peak_bytes'] < got['f32_peak_bytes'] and precision['bytes'] < precision['base_bytes'], got
    assert open(path('s')).read().startswith('F '); xml.parse(path('s.svg')); check_page(path('s.html'))
    half = chosen(MODEL, 'loss=0.01,training', *more, '--budget', '50%')[0]
    assert half['keep_all_peak_bytes'] < half['f32_peak_bytes'] * 0.8, half
    out = planned(MODEL, '--precision', 'loss=0.01,training', *more, '--budget', '60%', '--explain')
    assert 'all in f32' in out and 'The peak of' in out and 's1b1_conv1' in out, out
    planned(MODEL, '--precision', 'loss=0.01,training', *more, '--policy', 'chen-greedy')
    points = json.loads(planned(MODEL, '--precision', 'loss=0.01,training', *more, '--pareto', '--work', '100000', '--json', '-'))
    assert len(points['points']) > 3 and points['precision']['criterion'] == 'performance', points
    refused(2, ['no plan fits 1 bytes; the least that one was found for'], MODEL, '--precision', 'loss=0.01', '--budget', '1')

def shares_are_of_the_model_as_it_was_read():
    more = words()
    plain = json.loads(planned(MODEL, '--budget', '50%', '--work', '1', '--json', '-'))
    for how in ('loss=0.01,training', 'loss=0,training'):
        got = chosen(MODEL, how, *more, '--budget', '50%', '--work', '1')[0]
        assert got['f32_peak_bytes'] == plain['keep_all_peak_bytes'] and got['budget_bytes'] == plain['budget_bytes'], (how, got, plain)
        assert got['peak_bytes'] <= got['budget_bytes'], got
    out = planned(MODEL, '--precision', 'loss=0.01,training', *more, '--budget', '50%', '--work', '1')
    rows = {line.split('  ')[0]: line.split() for line in out.splitlines() if '%' in line and line.split('  ')[0] in ('all in f32', 'keep all', 'budget')}
    assert rows['all in f32'][-2:] == ['100.00', '%'] and rows['budget'][-2:] == ['50.00', '%'] and float(rows['keep all'][-3]) < 80, out
    assert 'before --precision changes it' in planned('--help')

def steps_are_counted_from_0():
    """As in errors, in the table and in the schedule's lines."""
    words = {'F': 'forward of', 'I': 'forward in place of', 'S': 'forward with saved state of', 'B': 'backward of', 'D': 'drop of'}
    names = [node.name for node in read_tlg(MODEL)]
    for budget in ('40%', '60%', '80%', '100%'):
        out = planned(MODEL, '--budget', budget, '--explain', '--schedule', path('s'), '--work', '1000000', '--html', path('s.html'))
        steps = [line.split() for line in open(path('s')) if line.strip()]
        at, what = out.split(' is at step ')[1].split('. ')[0].split(', the ')
        kind, node = steps[int(at)][0], int(steps[int(at)][1].split('.')[0])
        assert what == '%s %s' % (words[kind], names[node]), (at, what, steps[int(at)])
        page = open(path('s.html')).read()
        assert 'aria-valuemin="0" aria-valuemax="%d"' % (len(steps) - 1) in page

def places_pass_the_independent_checker():
    """Lifetimes are those that the checker derives from the schedule; places share no byte, and their end is the arena."""
    checker = load_checker()
    turn = count = tight = hosts = 0
    for model in [MODEL] + sorted(glob.glob(os.path.join(reference('small'), '*.tlg')))[::2]:
        nodes = checker.load(model)
        for inference in (False, True):
            for budget in ('40%' if model == MODEL else '60%', '80%', '100%'):
                turn += 1
                align = (1, 64, 256)[turn % 3]
                how = [model, '--budget', budget if model == MODEL or align == 1 else '1MiB', '--align', str(align), '--work', '1000000'] + ['--inference'] * inference
                if model == MODEL and budget == '40%': how += ['--host-budget', '50%', '--link', '900GB/s', '--cost-unit', 'ms']
                code, out, err = run(*how, '--json', '-', '--schedule', path('s'), '--places', path('p'), '--lifetimes', path('l'))
                if code == 2: continue
                assert code == 0, err
                ledger, got = checker.Ledger(), json.loads(out)
                checker.replay(nodes, list(checker.read_steps(path('s'))), inference, ledger=ledger)
                rows = [tuple(row) for row in csv.reader(open(path('l')))]
                assert sorted(row[:8] for row in rows[1:]) == sorted(tuple(str(x) for x in a[:8]) for a in ledger.all), how
                assert rows[0][8] == 'slot' and all(row[8] == '0' for row in rows[1:]) and all(a['slot'] == 0 for a in got['allocations']), how
                listed = [(a['tier'], a['use'], a['node'], a['output'], a['occurrence'], a['bytes'], a['first_step'], a['end_step']) for a in got['allocations']]
                assert [tuple(map(str, a)) for a in listed] == [row[:8] for row in rows[1:]], how
                assert all(a['name'] == nodes[a['node']].name for a in got['allocations']), how
                assert [str(a['offset']) for a in got['allocations']] == [row['offset'] for row in csv.DictReader(open(path('p')))], how
                high = checker.check_places(ledger.all, csv.DictReader(open(path('p'))), align).get(('device', '0'), 0)
                assert got['arena_bytes'] == -(-high // align) * align and got['alignment_bytes'] == align, (how, got, high)
                assert got['peak_bytes'] <= got['arena_bound_bytes'] <= got['arena_bytes'], (how, got)
                count += 1
                hosts += any(a['tier'] == 'host' for a in got['allocations'])
                tight += got['arena_bound_bytes'] == got['arena_bytes']
    assert count > 60 and hosts, (count, hosts)
    for align in ('0', '3', '-1', 'x', '2097152', '18446744073709551616'): refused(1, ['--align', 'power of two'], MODEL, '--align=' + align)
    for option in ('--places', '--lifetimes'): refused(1, [option, '--pareto'], MODEL, '--pareto', option, '1')
    planned(MODEL, '--pareto', '--align', '16', '--work', '1000000')
    return '%d plans, the arena of %d of them is proven least' % (count, tight)

def banks_and_blocks_pass_the_independent_checker():
    """Places in banks and in blocks share no byte, in no bank beyond its capacity; the high-water marks of the checker are ours."""
    checker = load_checker()
    turn = count = cut = several = 0
    for model in [MODEL] + sorted(glob.glob(os.path.join(reference('small'), '*.tlg')))[::3]:
        nodes = checker.load(model)
        for inference in (False, True):
            for how in (['--bank', '40%:1', '--bank', 'any:7'], ['--block', '45%'], ['--bank', '50%', '--bank', '30%:3', '--bank', 'any:9', '--block', '40%']):
                turn += 1
                align = (1, 4, 64)[turn % 3] if model == MODEL else (1, 1, 4)[turn % 3]
                how = [model, '--align', str(align), '--work', '200000'] + how + ['--inference'] * inference
                if turn % 2: how += ['--budget', '90%']
                code, out, err = run(*how, '--json', '-', '--schedule', path('s'), '--places', path('p'))
                if code == 2 or 'must be at least --align' in err: continue     # a tensor larger than a block, or a budget that is too small
                assert code == 0, err
                ledger, got = checker.Ledger(), json.loads(out)
                checker.replay(nodes, list(checker.read_steps(path('s'))), inference, ledger=ledger)
                high = checker.check_places(ledger.all, csv.DictReader(open(path('p'))), align)
                ours = got['bank_bytes']
                assert [-(-high.get(('device', str(k)), 0) // align) * align for k in range(len(ours))] == ours, (how, high, got)
                assert sum(ours) == got['arena_bytes'], (how, got)
                assert not got['budget_bytes'] or sum(ours) <= got['budget_bytes'], (how, got)
                assert [(str(a['bank']), str(a['offset']), str(a['block'])) for a in got['allocations']] == \
                    [(row['bank'], row['offset'], row['block']) for row in csv.DictReader(open(path('p')))], how
                if '--bank' in how: assert got['move_bound_cost'] <= got['move_cost'], (how, got)
                count += 1
                cut += '--block' in how and got['block_count'] > 1
                several += '--bank' in how and sum(b > 0 for b in ours) > 1
    assert count > 30 and cut > 5 and several > 10, (count, cut, several)
    refused(2, ['block_bytes: an allocation of node', 'takes 2097152 bytes, a block has 1048576'], MODEL, '--block', '1MiB')
    refused(2, ['block_bytes: an allocation of node'], MODEL, '--block', '1MiB', '--budget', '60%')
    refused(2, ['must hold 2097152'], MODEL, '--bank', '1MiB', '--bank', '1MiB', '--budget', '100%', '--live')
    refused(2, ['no plan fits 2097152 bytes'], MODEL, '--bank', '1MiB', '--bank', '1MiB')
    for bank in ('0', '4MiB:0', '4MiB:x', '1MiB:', ':1', 'all', '9' * 70): refused(1, ['--bank'], MODEL, '--bank', bank)
    for block in ('0', 'x', '4'): refused(1, ['--block'], MODEL, '--block', block, '--align', '8')
    refused(1, ['--bank', 'more than 8'], MODEL, *['--bank', 'any'] * 9)
    for option in ('--bank', '--block'): refused(1, [option, '--pareto'], MODEL, '--pareto', option, '1MiB')
    return '%d plans, %d of them cut, %d in several banks' % (count, cut, several)

def steps_in_flight_keep_what_they_use():
    """What a step frees is not taken again before the K-th step behind it, by the steps and places that the program writes."""
    checker = load_checker()
    nodes, count, least, arenas = checker.load(MODEL), 0, [], []
    for flight in ('1', '2', '4', '100000'):
        for budget in (['--budget', '70%'], ['--budget', '300%'], []):
            code, out, err = run(MODEL, *budget, '--in-flight', flight, '--align', '4', '--json', '-', '--schedule', path('s'))
            got = json.loads(out)
            assert got['in_flight'] == int(flight), got
            if code == 2: least.append(got['minimal_budget_bytes']); continue
            assert code == 0 and not err, err
            steps = open(path('s')).read().splitlines()
            if flight == '1': assert not steps[0].startswith('K'), steps[0]
            else: assert steps.pop(0) == 'K ' + flight, steps[0]
            ledger, k = checker.Ledger(), int(flight)
            checker.replay(nodes, [s.split() for s in steps], ledger=ledger)
            bare = {tuple(a[1:5]): a for a in ledger.all}
            for a in got['allocations']:
                end = bare[a['use'], a['node'], a['output'], a['occurrence']][7]
                held = [end] if k == 1 or steps[end:end + 1] and steps[end].startswith('I ') else []     # taken over
                assert a['end_step'] in held + (k > 1) * [min(end - 1 + k, len(steps)), min(end + k, len(steps))], (flight, a, end)
            for a, b in itertools.combinations(got['allocations'], 2):
                if a['first_step'] > b['first_step']: a, b = b, a
                if min(a['offset'] + a['bytes'], b['offset'] + b['bytes']) <= max(a['offset'], b['offset']): continue
                taken_over = a['offset'] == b['offset'] and a['bytes'] == b['bytes'] and steps[b['first_step']].startswith('I ')
                assert b['first_step'] >= a['end_step'] or taken_over, (flight, a, b)
            assert not got['budget_bytes'] or got['arena_bytes'] <= got['budget_bytes'], got
            if not budget: arenas.append(got['arena_bytes'])
            count += 1
    assert arenas == sorted(arenas) and arenas[0] < arenas[-1] and least == sorted(least), (arenas, least)
    out = planned(MODEL, '--in-flight', '4')
    assert 'up to 4 steps under way together' in out, out
    assert json.loads(planned(MODEL, '--compile', '--in-flight', '4', '--json', '-'))['in_flight'] == 4
    for value in ('0', '-1', 'x', '1.5', '2147483648'): refused(1, ['--in-flight'], MODEL, '--in-flight=' + value)
    for other in (['--live', '--budget', '90%'], ['--policy', 'chen-sqrt'], ['--order'], ['--c-code', 'n', '-o', folder], ['--pareto']):
        refused(1, ['--in-flight'], MODEL, '--in-flight', '2', *other)
    return '%d plans, arenas %s' % (count, arenas)

def an_order_takes_the_least_bytes():
    """Two branches: the one ends before the other begins. The plan passes the independent checker, and the budget binds its arena."""
    checker = load_checker()
    branches = write('b.tlg', 'tlg 1\nnode 0 x input fwd=0 bwd=0 out=1 needs=none in=-\n' + ''.join(
        'node %d %s f fwd=1 bwd=1 out=%d needs=none in=%s\n' % row for row in
        ((1, 'a1', 100, '0'), (2, 'b1', 100, '0'), (3, 'a2', 2, '1'), (4, 'b2', 2, '2'), (5, 'y', 1, '3,4'))))
    out = planned(branches, '--order', '--inference')
    assert 'order of the forwards: none takes less' in out and ' 203 ' in out and ' 105 ' in out, out
    refused(2, ['104 bytes', 'found for is 105 bytes', 'none takes less'], branches, '--order', '--inference', '--budget', '104')
    code, out, err = run(branches, '--order', '--inference', '--budget', '104', '--json', '-')
    assert code == 2 and set(json.loads(out)) == INFEASIBLE_KEYS and json.loads(out)['minimal_budget_bytes'] == 105, (out, err)
    count = lower = 0
    for model in [branches, MODEL] + sorted(glob.glob(os.path.join(reference('small'), '*.tlg')))[::3]:
        for inference in (False, True):
            how = [model, '--order', '--work', '1000000'] + ['--inference'] * inference
            got = json.loads(planned(*how, '--json', '-', '--schedule', path('s')))
            assert set(got) == KEYS | {'listing_arena_bytes', 'order_bound_bytes'}, got
            assert got['order_bound_bytes'] <= got['arena_bytes'] <= got['listing_arena_bytes'] and got['cost_ratio'] <= 1, (how, got)
            checker.replay(checker.load(model), list(checker.read_steps(path('s'))), inference)
            within = planned(*how, '--budget', str(got['arena_bytes']))
            assert 'budget' in within, within
            count += 1
            lower += got['arena_bytes'] < got['listing_arena_bytes']
    assert '"peak_bytes": 105' in planned(branches, '--order', '--inference', '--live', '--budget', '105', '--json', '-')
    for more in (['--policy', 'revolve'], ['--form', 'once'], ['--pareto'], ['--front'], ['--host-budget', '1', '--link', '1']):
        refused(1, ['--order'], MODEL, '--order', *more)
    return '%d plans, %d below the arena of the listing' % (count, lower)

def limits_that_cannot_be_held_are_named():
    refused(2, ['least_speedup'], MODEL, '--precision', 'speedup=1000')
    refused(2, ['loss_limit'], MODEL, '--precision', 'loss=0.01,schemes=i8,unknown', '--profiles', write('p', 'profiles 1\nprofile * i8=0.5:2\nprofile input f32=0:1\n'))
    code, out, err = run(MODEL, '--precision', 'speedup=1000', '--json', '-')
    got = json.loads(out)
    assert code == 2 and set(got) == {'model', 'nodes', 'precision', 'reason', 'seconds'} and got['precision'] is None and 'least_speedup' in got['reason'], got

def fronts_are_shown():
    more = words()
    out = planned(MODEL, '--front', *more)
    assert 'speeds: assumed of' in out, out
    assert out.count('<- knee') == 1 and 'points, ' in out, out
    planned(MODEL, '--front', *more, '--svg', path('front.svg'))
    root = xml.parse(path('front.svg')).getroot()
    assert root.tag == '{http://www.w3.org/2000/svg}svg' and len(list(root.iter())) > 10
    points = json.loads(planned(MODEL, '--front', *more, '--json', '-'))['points']
    for left, right in zip(points, points[1:]): assert left['loss'] < right['loss'] and left['cost'] > right['cost'], (left, right)
    assert points[0]['loss'] == 0 and all(point['lower_bound_cost'] <= point['cost'] for point in points)
    middle = points[len(points) // 2]
    again = chosen(MODEL, 'loss=%r' % middle['loss'], *more)[1]
    assert again['cost'] >= middle['lower_bound_cost'], (again, middle)
    assert 'training' in planned(MODEL, '--front', '--precision', 'training')
    assert 'bytes against loss' in planned(MODEL, '--front', '--precision', 'objective=bytes')

def small_camera_network():
    """Convolutions on 32 x 32 pixels with weights and biases, rows, and a skip across two of them."""
    lines = ['tlg 2', 'node 0 image input fwd=0 bwd=0 out=12288 needs=none in=- dies rows=32@0']
    def add(name, op, inputs, out, more): lines.append('node %d %s %s bwd=0 out=%d needs=none in=%s grad=no %s' % (len(lines) - 1, name, op, out, inputs, more))
    add('stem', 'conv2d', '0', 32768, 'fwd=442368 rows=32@0 rin=3/1/1 ordered stored=864:f32,32:f32')
    add('deep1', 'conv2d', '1', 32768, 'fwd=147456 rows=32@0 rin=3/1/1 ordered stored=288:f32,32:f32')
    add('point1', 'conv2d', '2', 32768, 'fwd=131072 rows=32@0 rin=1:1 ordered stored=256:f32,32:f32')
    add('add', 'add', '3,1', 32768, 'fwd=8192 rows=32@0 rin=1:1,1:1 ordered')
    add('deep2', 'conv2d', '4', 8192, 'fwd=36864 rows=16@0 rin=3/2/1 ordered stored=288:f32,32:f32')
    add('pool', 'avgpool', '5', 32, 'fwd=2048')
    add('out', 'linear', '6', 40, 'fwd=160 stored=320:f32,40:f32')
    return write('camera.tlg', '\n'.join(lines) + '\nend 8\n')

def limits_are_kept_together():
    model, words = small_camera_network(), ('--inference', '--align', '4', '--precision', 'schemes=f32+i8+i8-channel+i16,sensitive,any-result,inputs=f32+i8')
    got = {}
    for name, limits in {'loss': ('--ram', '28K', '--flash', '1500'), 'flash': ('--ram', '32K', '--loss', '0.01'),
                         'ram': ('--flash', '3000', '--loss', '0.01'), 'cost': ('--ram', '32K', '--flash', '2K', '--loss', '0.1')}.items():
        data = json.loads(planned(model, *words, *limits, '--json', '-'))
        fit = data['limits']
        assert fit['minimized'] == name and fit['proven'], (name, fit)
        for option, value in zip(limits[::2], limits[1::2]):
            most = float(value[:-1]) * 1024 if value.endswith('K') else float(value)
            assert fit[{'--ram': 'ram_bytes', '--flash': 'flash_bytes', '--loss': 'loss'}[option]] <= most, (limits, fit)
        assert data['arena_bytes'] <= fit['ram_bytes'] == data['budget_bytes'], (fit, data['arena_bytes'])
        assert [node['scheme'] for node in data['precision']['nodes']] == fit['schemes']
        got[name] = fit
    assert got['flash']['flash_bytes'] <= got['ram']['flash_bytes'] and got['ram']['ram_bytes'] <= got['flash']['ram_bytes']
    # least of one is a limit that holds, and a byte less is refused with it
    least = got['ram']['ram_bytes']
    again = json.loads(planned(model, *words, '--flash', '3000', '--loss', '0.01', '--ram', str(least), '--json', '-'))['limits']
    assert again['ram_bytes'] == least
    refused(2, ['no choice was found within all limits', 'ram %d' % least], model, *words, '--flash', '3000', '--loss', '0.01', '--ram', str(least - 1))
    # line buffers: less RAM for the same loss and flash, and a plan of it
    rows = json.loads(planned(model, *words, '--rows', '--flash', '3000', '--loss', '0.01', '--json', '-'))
    assert rows['limits']['ram_bytes'] < least and rows['arena_bytes'] == rows['limits']['ram_bytes'], (rows['limits'], least)
    report = planned(model, *words, '--rows', '--flash', '3000', '--loss', '0.01')
    assert 'ram is the least' in report and 'region' in report
    assert 'flash is the least, proven' in planned(model, *words, '--minimize', 'flash', '--loss', 'any')
    # what line buffers would do is said where they are not asked for
    refused(2, ['no choice was found within all limits', 'with --rows, line buffers'], model, *words, '--flash', '3000', '--loss', '0.01', '--ram', str(least - 1))
    # no limit of the loss
    how = 'objective=bytes,schemes=f32+i8,sensitive,any-result,loss='
    without, limited = (json.loads(planned(model, '--inference', '--precision', how + loss, '--json', '-'))['precision'] for loss in ('any', '0'))
    assert without['loss'] > 0 and limited['loss'] == 0 and without['bytes'] < limited['bytes'], (without['bytes'], limited['bytes'])

def what_is_compiled_keeps_limits():
    model, words = small_camera_network(), ('--inference', '--align', '4', '--precision', 'schemes=f32+i8+i8-channel+i16,sensitive,any-result,inputs=f32+i8')
    limits = ('--ram', '32K', '--flash', '2K', '--loss', '0.1')
    alone = json.loads(planned(model, *words, *limits, '--json', '-'))
    data = json.loads(planned(model, *words, *limits, '--compile', '--json', '-'))
    assert data['limits'] == alone['limits'] and data['precision'] == alone['precision']
    assert data['arena_bytes'] <= data['budget_bytes'] == alone['limits']['ram_bytes']
    assert data['compiled']['choice']['formats'] == {} and data['compiled']['model_nodes'] == alone['nodes']
    report = planned(model, *words, *limits, '--compile')
    assert 'compiled for inference' in report and 'cost is the least' in report
    refused(1, ['--precision: not beside --compile'], model, '--compile', '--loss', '0.1', '--precision', 'loss=0.1')
    refused(1, ['--recommend: not beside --ram'], model, *words, *limits, '--recommend')
    # of training, too: never dearer than the plan of that graph, which is among its choices
    words = ('--precision', 'loss=0.01,training,objective=bytes', '--budget', '40%')
    plan, best = (json.loads(planned(MODEL, *words, *more, '--json', '-')) for more in ((), ('--compile',)))
    assert best['precision'] == plan['precision'] and best['total_cost'] <= plan['total_cost'] and best['arena_bytes'] <= best['budget_bytes']
    assert {node['scheme'] for node in best['precision']['nodes']} >= {'bf16'}, best['precision']

def limits_hold_for_regions_in_place():
    """Arenas of regions whose nodes overwrite what they read, as limits found them; keeping everything takes more."""
    lines = ['tlg 2', 'node 0 image input fwd=0 bwd=0 out=12288 needs=none in=- dies rows=32@0']
    def add(name, op, inputs, out, more): lines.append('node %d %s %s bwd=0 out=%d needs=none in=%s grad=no fwd=%d %s' % (len(lines) - 1, name, op, out, inputs, out, more))
    add('stem', 'conv2d', '0', 32768, 'rows=32@0 rin=3/1/1 ordered stored=864:f32,32:f32')
    add('relu', 'relu', '1', 32768, 'inplace=0')           # not in rows: it needs its input whole
    add('deep', 'conv2d', '2', 8192, 'rows=16@0 rin=3/2/1 ordered stored=288:f32,32:f32')
    add('act', 'relu', '3', 8192, 'rows=16@0 rin=1:1 ordered inplace=0')
    add('point', 'conv2d', '4', 8192, 'rows=16@0 rin=1:1 ordered stored=256:f32,32:f32')
    add('out', 'linear', '5', 40, 'stored=320:f32,40:f32')
    model = write('inplace.tlg', '\n'.join(lines) + '\nend 7\n')
    words, met = ('--inference', '--rows', '--align', '4', '--precision', 'schemes=f32+i8+i8-channel+i16,sensitive,any-result,inputs=f32+i8'), 0
    for limits in (('--ram', 'any', '--flash', '3000'), ('--flash', '3000', '--loss', '0.01'), ('--ram', '24K', '--flash', '2K'), ('--ram', '12K', '--loss', 'any'), ('--ram', '48K', '--flash', '10K')):
        code, out, err = run(model, *words, *limits, '--json', '-')
        if code == 2: continue
        assert code == 0, err
        data = json.loads(out)
        assert data['arena_bytes'] == data['limits']['ram_bytes'] == data['budget_bytes'] and data['total_cost'] == data['base_cost'], (limits, data['limits'], data['arena_bytes'])
        met += data['arena_bytes'] < data['keep_all_peak_bytes']
    assert met > 1, met
    # without limits: the fewest bytes at the same cost, and one step of the alignment less costs more or is refused
    data = json.loads(planned(model, '--inference', '--rows', '--align', '4', '--json', '-'))
    assert data['total_cost'] == data['base_cost'] and data['arena_bytes'] < data['keep_all_peak_bytes'], data['arena_bytes']
    code, out, err = run(model, '--inference', '--rows', '--align', '4', '--budget', str(data['arena_bytes'] - 4), '--json', '-')
    assert code == 2 or json.loads(out)['total_cost'] > data['total_cost']

def fronts_of_limits_are_shown():
    model, words = small_camera_network(), ('--inference', '--precision', 'schemes=f32+i8-channel+i16,sensitive,any-result,inputs=f32+i8')
    points = json.loads(planned(model, *words, '--front', '--ram', 'any', '--flash', 'any', '--json', '-', '--svg', path('front.svg')))['points']
    keys = ('ram_bytes', 'flash_bytes', 'loss')
    assert len(points) > 10
    for a, b in itertools.permutations(points, 2): assert any(a[k] < b[k] for k in keys), (a, b)
    assert min(p['loss'] for p in points) == 0 and [p['ram_bytes'] for p in points] == sorted(p['ram_bytes'] for p in points)
    circles = [e for e in xml.parse(path('front.svg')).iter() if e.tag.endswith('circle')]
    assert len(circles) == len(points)
    assert '%d points of a grid' % len(points) in planned(model, *words, '--front', '--ram', 'any')
    capped = json.loads(planned(model, *words, '--front', '--ram', '60000', '--json', '-'))['points']
    assert capped and all(p['ram_bytes'] <= 60000 for p in capped)

def hostile_limits_are_refused():
    for rest, words in [((), ['--inference is missing']), (('--inference',), ['give two']),
                        (('--inference', '--flash', '50%'), ['--flash 50%: must be bytes']), (('--inference', '--flash', '2', '--ram', '0'), ['--ram 0']),
                        (('--inference', '--loss', 'x', '--flash', '1K'), ['--loss x']), (('--inference', '--minimize', 'size'), ['must be ram, flash, loss or cost']),
                        (('--inference', '--loss', '1', '--order'), ['--order: not beside']), (('--inference', '--loss', '1', '--precision', 'loss=1'), ['beside --ram']),
                        (('--inference', '--front', '--loss', '1'), ['--front: shows all'])]:
        refused(1, words, MODEL, *(rest if '--minimize' in rest or '--ram' in rest else ('--ram', '48K') + rest))
    refused(1, ['--loss: is for --compile, or beside --ram'], MODEL, '--loss', '1')

def hostile_precisions_are_refused():
    good = [MODEL, '--precision', 'loss=0.01']
    words = [('', 'value'), (',', 'unknown'), ('loss', 'value'), ('loss=', 'value'), ('loss=x', 'loss'), ('loss=-1', 'loss'), ('loss=nan', 'loss'), ('loss=inf', 'loss'), ('loss=1e999', 'loss'),
             ('loss=0x1', 'loss'), ('loss=1 ', 'loss'), ('loss=0.1,', 'unknown'), ('loss=0.1,loss=0.2', 'second'), ('speedup=0', 'speedup'), ('speedup=-2', 'speedup'), ('speedup=two', 'speedup'),
             ('performance', 'loss='), ('accuracy', 'loss='), ('custom', 'loss='), ('performance,speedup=2', 'loss='), ('accuracy,loss=0.1', 'speedup='), ('custom,loss=0.1', 'both'),
             ('balanced,loss=1', 'balanced'), ('balanced,accuracy', 'balanced'), ('balanced=2', 'share'), ('balanced=-0.1', 'share'), ('balanced=', 'value'), ('balanced,balanced', 'second'),
             ('performance,accuracy,loss=1', 'second'), ('training', 'needs'), ('loss=1,training=1', 'no value'), ('loss=1,objective=speed', 'objective'), ('loss=1,objective', 'value'),
             ('loss=1,schemes=', 'value'), ('loss=1,schemes=i7', 'w8a16'), ('loss=1,schemes=i8+', '+'), ('loss=1,schemes=+i8', 'w8a16'), ('loss=1,schemes=' + 'i' * 300, 'schemes'),
             ('loss=1,memory=0', 'memory'), ('loss=1,memory=fast', 'memory'), ('loss=1,memory=', 'value'), ('loss=1,device=', 'value'), ('loss=1,frob', 'frob'), ('frob=1', 'frob'), ('=', 'unknown'),
             ('loss=1,training,schemes=i8', 'schemes'), ('loss=1,f16-fits=1', 'no value')]
    for how, word in words: refused(1, [word], MODEL, '--precision=' + how)
    texts = {'': [], 'profiles 2\n': ['line 1'], 'profile x i8=1:1\n': ['line 1'], 'profiles 1\nfrob\n': ['line 2', 'frob'], 'profiles 1\n\n# c\nprofile\n': ['line 4'],
             'profiles 1\nprofile x\n': ['line 2'], 'profiles 1\nprofile x i8\n': ['line 2', 'i8'], 'profiles 1\nprofile x i8=1\n': ['line 2'], 'profiles 1\nprofile x i8=-1:1\n': ['line 2'],
             'profiles 1\nprofile x i8=1:0\n': ['line 2'], 'profiles 1\nprofile x i8=nan:1\n': ['line 2'], 'profiles 1\nprofile x i8=1:inf\n': ['line 2'], 'profiles 1\nprofile x i8=1:1 i8=1:1\n': ['twice'],
             'profiles 1\nprofile x i9=1:1\n': ['i9'], 'profiles 1\nprofile x best=i9 i8=1:1\n': ['best'], 'profiles 1\nprofile x least=0 i8=1:1\n': ['least'], 'profiles 1\nprofile x most=-1 i8=1:1\n': ['most'],
             'profiles 1\nprofile x least=5 most=2 best=i8 i8=1:1\n': ['least'], 'profiles 1\nprofile x best=i8 i8=1:1\nprofile X best=i8 i8=1:1\n': ['profile'], 'profiles 1\nprofile x f32=1:1\n': ['f32'],
             'profiles 1\nnode\n': ['line 2'], 'profiles 1\nnode nobody i8=1\n': ['nobody'], 'profiles 1\nnode stem i8=x\n': ['line 2'], 'profiles 1\nnode stem i8=1:0\n': ['line 2'],
             'profiles 1\nnode stem i8=1:1:1\n': ['line 2'], 'profiles 1\0\n': ['zero byte']}
    for text, words_of in texts.items(): refused(1, words_of, *good, '--profiles', write('bad.profiles', text))
    cases = [
        ([*good, '--precision', 'loss=1'], ['twice']), ([MODEL, '--precision'], ['--precision']), ([*good, '--profiles', path('none')], ['none']), ([*good, '--profiles', folder], [folder]),
        ([MODEL, '--profiles', path('p')], ['--profiles']), ([MODEL, '--precision', 'loss=1,training', '--inference'], ['--inference']), (['-', *good[1:], '--profiles', '-'], ['standard input']),
        ([*good, '--cost-unit', 'ns'], ['--link']), ([MODEL, '--front', '--budget', '60%'], ['--budget']), ([MODEL, '--front', '--pareto'], ['--front']), ([MODEL, '--front', '--explain'], ['--explain']),
        ([MODEL, '--front', '--html', path('h')], ['--html']), ([MODEL, '--front', '--schedule', path('h')], ['--schedule']), ([MODEL, '--front', '--c-table', path('h')], ['--c-table']),
        ([MODEL, '--front', '--policy', 'revolve'], ['--policy']), ([MODEL, '--front', '--host-budget', '1GiB', '--link', '1'], ['--host-budget']), ([MODEL, '--front', '--precision', 'loss=1'], ['--front']),
        ([MODEL, '--front', '--precision', 'balanced'], ['--front']), ([MODEL, '--front', '--front'], ['twice']), ([MODEL, '--front=1'], ['no value']), ([MODEL, '--front', '--svg', path('no/where')], ['where']),
        ([MODEL, '--precision', 'loss=1,memory=1kB/s', '--cost-unit', 'flop@10000TFLOPS'], ['less than a byte']), ([MODEL, '--precision', 'loss=1,memory=10000000000GB/s', '--cost-unit', 'flop@1.5GFLOPS'], ['64 bits']),
        ([*good, '--json', path('no/where')], ['where']), ([*good, '--policy', 'chen-sqrt'], ['inference']), ([path('none.tlg'), *good[1:]], ['none.tlg']),
    ]
    for args, words_of in cases: refused(1, words_of, *args)
    return '%d command lines' % (len(words) + len(texts) + len(cases))

# -- compiled strategies --

COMPILED_KEYS = {'model_nodes', 'model_peak_bytes', 'choice', 'runner_up', 'base_cost', 'bound_cost', 'gap_ratio', 'proven', 'tried_count'}
CHOICE_KEYS = {'part_count', 'fused_count', 'conversion_count', 'copy_count', 'compressed_count', 'formats', 'loss', 'cost', 'arena_bytes'}
CHAIN = ['tlg 1', 'batch 4', 'node 0 x input fwd=0 bwd=0 out=4000 needs=none in=-', 'node 1 a conv fwd=90000 bwd=90000 out=4000 needs=in in=0',
         'node 2 b relu fwd=1000 bwd=1000 out=4000 needs=out in=1 takes_blocks', 'node 3 c sigmoid fwd=1000 bwd=1000 out=4000 needs=out in=2 takes_blocks',
         'node 4 d relu fwd=1000 bwd=1000 out=4000 needs=out in=3 takes_blocks', 'node 5 e conv fwd=80000 bwd=80000 out=4000 needs=in in=4 keep']

def compiled(*args):
    got = json.loads(planned(*args, '--json', '-'))
    assert set(got) == KEYS | {'compiled'} and set(got['compiled']) - {'strategies'} == COMPILED_KEYS, got
    one = got['compiled']
    for choice in [one['choice']] + [one['runner_up']] * (one['runner_up'] is not None): assert set(choice) == CHOICE_KEYS, choice
    parts = one['choice']['part_count']
    assert one['choice']['cost'] == parts * got['total_cost'] and one['choice']['arena_bytes'] == got['arena_bytes'], got
    assert one['bound_cost'] <= one['choice']['cost'] and one['proven'] == (one['bound_cost'] == one['choice']['cost']), got
    assert abs(one['gap_ratio'] - (one['choice']['cost'] / one['bound_cost'] - 1)) < 1e-8 if one['bound_cost'] else True, got
    assert sum(one['choice']['formats'].values()) + one['choice']['conversion_count'] == got['nodes'], got
    assert got['budget_bytes'] is None or got['arena_bytes'] <= got['budget_bytes'], got
    return got, one

def compiled_plans_are_what_they_say():
    work = ['--work', '100000000']
    plain = json.loads(planned(MODEL, '--budget', '50%', '--json', '-', *work))
    got, one = compiled(MODEL, '--compile', '--budget', '50%', *work)          # nothing to choose: the plan of --budget
    assert got['total_cost'] == plain['total_cost'] and one['choice']['formats'] == {'f32': 52}, (got, plain)
    costs = [got['total_cost']]
    for more in (['--loss', 'any'], ['--split'], ['--loss', '0.01', '--split']):
        got, one = compiled(MODEL, '--compile', '--budget', '40%', *more, *work)
        assert got['budget_bytes'] == plain['keep_all_peak_bytes'] * 40 // 100 and one['model_peak_bytes'] == plain['keep_all_peak_bytes'], got
        assert one['model_nodes'] == 52 and one['base_cost'] == plain['base_cost'], one
        assert ('--split' in more) == (one['choice']['part_count'] > 1), (more, one)
        assert ('bf16' in one['choice']['formats']) == (more == ['--loss', 'any']), (more, one)
        assert 'f16' not in one['choice']['formats'], one
        assert one['choice']['loss'] <= 0.01 or 'any' in more, one
        assert one['choice']['cost'] < costs[0], (more, one, costs)
    half, whole = compiled(MODEL, '--compile', '--budget', '25%', '--split', *work)
    assert abs(half['base_cost'] * whole['choice']['part_count'] / plain['base_cost'] - 1) < 0.001 and half['keep_all_peak_bytes'] < plain['keep_all_peak_bytes'], (half, plain)
    exact = compiled(MODEL, '--compile', '--budget', '40%', '--loss', '0', *work)[1]
    assert exact['choice']['formats'] == {'f32': 52} and exact['choice']['loss'] == 0, exact
    narrow = compiled(MODEL, '--compile', '--inference', '--budget', '60%', '--loss', 'any', *work)[1]
    assert set(narrow['choice']['formats']) & {'f16', 'bf16'}, narrow
    free, one = compiled(MODEL, '--compile', *work)
    assert free['budget_bytes'] is None and free['cost_ratio'] == 1 and one['proven'], free
    spilled = compiled(MODEL, '--compile', '--budget', '40%', '--host-budget', '50%', '--link', '900GB/s', '--cost-unit', 'ms', *work)
    assert spilled[0]['host_peak_bytes'] > 0 and spilled[1]['choice']['copy_count'] > 0, spilled[1]
    assert compiled(MODEL, '--compile', '--budget', '40%', '--align', '4096', *work)[0]['alignment_bytes'] == 4096
    assert compiled(MODEL, '--compile', '--budget', '60%', '--block', '45%', *work)[0]['block_count'] > 1

def compiled_reports_and_files_are_whole():
    model, board = write('chain.tlg', head(*CHAIN[1:])), write('board', 'profiles 1\nmachine board flops=1e10 memory=1000000000\nprofile conv bf16=0.001:1.5\nprofile relu bf16=0:1\n')
    files = ['--schedule', path('s'), '--svg', path('s.svg'), '--html', path('s.html'), '--lifetimes', path('l'), '--places', path('p'), '--json', path('j')]
    out = planned(model, '--compile', '--budget', '60%', '--loss', 'any', '--explain', *files)
    for line in ('chosen: cost ', 'no combination costs less than ', 'runner-up: ', 'one more MiB', 'The peak of ', 'nodes run again', 'the model '): assert line in out, (line, out)
    assert 'What more memory would buy' not in out and 'conversions: ' in out, out
    assert open(path('s')).read().startswith('F '); xml.parse(path('s.svg')); check_page(path('s.html'))
    got = json.loads(open(path('j')).read())
    rows = list(csv.DictReader(open(path('l'))))
    assert len(rows) == len(got['allocations']) == len(list(csv.DictReader(open(path('p'))))) and got['nodes'] > 6, got
    assert {allocation['name'] for allocation in got['allocations']} > {'a', 'b', 'e_f32'}, got      # nodes of the compiled graph
    fused = compiled(model, '--compile', '--inference', '--loss', '0', '--profiles', board)[1]
    assert fused['choice']['fused_count'] == 1 and fused['choice']['formats'] == {'f32': 4}, fused
    gains = write('gains', 'profiles 1\nprofile conv bf16=0.001:1.5\nprofile relu bf16=0:1\nprofile sigmoid bf16=0:1\n')
    fast = compiled(model, '--compile', '--loss', '0.01', '--profiles', gains)[1]
    assert compiled(model, '--compile', '--loss', '0.0015', '--profiles', gains)[1]['choice']['loss'] <= 0.001
    assert fast['choice']['cost'] < fast['base_cost'] and 0 < fast['choice']['loss'] <= 0.01, fast
    for more in (['--inference', '--loss', '0', '--profiles', board], ['--loss', '0.01', '--profiles', gains]):
        refused(1, ['--c-table', 'map'], model, '--compile', *more, '--c-table', path('t.h'))
    assert not os.path.exists(path('t.h'))
    assert '2,  // repeat_count\n' in planned(model, '--compile', '--budget', '50%', '--split', '--c-table', '-')
    out = planned(model, '--compile', '--budget', '50%', '--split')
    assert 'a step runs 2 of them' in out, out
    shares = {line.split('  ')[0]: line.split(' %')[0].split()[-1] for line in out.splitlines() if ' % ' in line + ' '}
    assert (shares['the model'], shares['keep all'], shares['budget']) == ('100.00', '50.00', '50.00'), out
    checker = load_checker()
    planned(MODEL, '--compile', '--budget', '50%', '--schedule', path('s'), '--work', '1000000')     # not split, fused or converted: a schedule of the model
    assert checker.replay(checker.load(MODEL), list(checker.read_steps(path('s'))), False)['peak'] <= 34996352 // 2

def a_compiled_budget_that_is_too_small_names_the_least():
    for more in ([], ['--split'], ['--loss', 'any', '--split'], ['--inference', '--loss', 'any'], ['--block', '10%']):
        how = [MODEL, '--compile', *more, '--work', '50000000']
        code, out, err = run(*how, '--budget', '1000', '--json', '-')
        got = json.loads(out)
        assert code == 2 and set(got) == INFEASIBLE_KEYS and str(got['minimal_budget_bytes']) in err, (more, got, err)
        refused(2, ['1000', str(got['minimal_budget_bytes'])], *how, '--budget', '1000')
        assert compiled(*how, '--budget', str(got['minimal_budget_bytes']))[0]['arena_bytes'] <= got['minimal_budget_bytes'], more

def compiled_curves_fall():
    for more in ([], ['--loss', 'any'], ['--split'], ['--inference', '--align', '256']):
        how = [MODEL, '--compile', '--pareto', *more, '--work', '100000000']
        got = json.loads(planned(*how, '--json', '-'))
        points = got['points']
        assert set(got) == {'model', 'nodes', 'keep_all_peak_bytes', 'base_cost', 'knee', 'points', 'work', 'seconds'}, got
        assert 0 <= got['knee'] < len(points) and all(set(point) == {'budget_bytes', 'bound_cost', 'choice'} for point in points), got
        assert all(point['bound_cost'] <= point['choice']['cost'] and set(point['choice']) == CHOICE_KEYS for point in points), got
        for left, right in zip(points, points[1:]):
            assert left['choice']['arena_bytes'] < right['choice']['arena_bytes'] and left['choice']['cost'] > right['choice']['cost'], (left, right)
        out = planned(*how)
        assert out.count('<- knee') == (len(points) > 2) and all(' %d ' % point['choice']['arena_bytes'] in out for point in points), out
        assert ('--split' in more) == (' parts' in out) and ('bf16' in out) == ('--loss' in more), out

def a_recommendation_shows_what_was_compiled():
    got, one = compiled(MODEL, '--recommend', '--budget', '40%', '--loss', '0.01', '--work', '50000000')
    outcomes = [row['outcome'] for row in one['strategies']]
    assert outcomes.count('chosen') == 1 and 'over' in outcomes and set(outcomes) <= {'chosen', 'slower', 'larger', 'over', 'loss'}, one
    chosen_row = one['strategies'][outcomes.index('chosen')]
    assert chosen_row['choice'] == one['choice'] and chosen_row['strategy']['mode'] == 'lazy', one
    assert all((row['choice'] is None) == (row['outcome'] in ('over', 'loss')) for row in one['strategies']), one
    out = planned(MODEL, '--recommend', '--budget', '40%', '--loss', '0.01', '--work', '50000000')
    assert out.count('no plan found that fits') == outcomes.count('over') and out.count('  chosen: cost ') == 1 and re.search(r'slower by \d+\.\d\d %', out), out
    refused(2, ['no strategy fits 1000 bytes', 'least'], MODEL, '--recommend', '--budget', '1000', '--work', '5000000')

def compiling_excludes_what_it_chooses():
    for other in (['--policy', 'revolve'], ['--order'], ['--form', 'once'], ['--seed', '1'], ['--precision', 'loss=1', '--loss', '1'], ['--front'], ['--live', '--budget', '50%'], ['--bank', 'any']):
        refused(1, [other[0], '--compile'], MODEL, '--compile', *other)
        refused(1, [other[0], '--recommend'], MODEL, '--recommend', *other)
    single = write('single.tlg', head(*[line for line in CHAIN[1:] if line != 'batch 4']))
    scalar = write('scalar.tlg', head(*CHAIN[1:], 'node 6 l loss fwd=1 bwd=1 out=4 needs=in in=5'))
    cases = [([MODEL, '--loss', '1'], ['--loss', '--compile']), ([MODEL, '--split'], ['--split', '--compile']), ([MODEL, '--compile', '--recommend'], ['--recommend']),
             ([MODEL, '--compile', '--profiles', path('p')], ['--profiles', '--loss']), ([MODEL, '--compile', '--pareto', '--svg', path('s')], ['--svg']),
             ([MODEL, '--compile', '--pareto', '--html', path('s')], ['--html']), ([MODEL, '--compile', '--pareto', '--budget', '50%'], ['--pareto']),
             ([MODEL, '--compile', '--pareto', '--schedule', path('s')], ['--schedule']), ([MODEL, '--recommend', '--pareto'], ['--recommend']),
             ([MODEL, '--compile', '--compile'], ['twice']), ([MODEL, '--compile=1'], ['no value']), ([MODEL, '--compile', '--split=2'], ['no value']),
             *[([MODEL, '--compile', '--loss=' + loss], ['--loss', 'any']) for loss in ('x', '-1', 'nan', 'inf', '1e999', 'all')],
             ([single, '--compile', '--split'], ['--split', 'batch']), ([scalar, '--compile', '--split'], ['--split', 'node l', 'fixed'])]
    for args, words in cases: refused(1, words, *args)
    planned(scalar, '--compile')

def an_interrupted_compilation_ends_with_the_best_so_far():
    model = reference('models/unet.tlg')
    for more in (['--budget', '40%'], ['--pareto']):
        child = subprocess.Popen([program, model, '--compile', '--loss', 'any', *more, '--work', '1000000000000', '--json', '-'],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(4)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
        got = json.loads(out)
        assert child.returncode == 0 and 'stopped early' in err, (more, out, err)
        if '--pareto' in more: assert got['points'], got
        else: assert got['arena_bytes'] <= got['budget_bytes'] and got['compiled']['tried_count'] > 0, got

# -- bad input --

# -- ranks --

def weighted():
    """The model with weights: what a node does not say itself is a tenth of its output."""
    lines = open(MODEL).read().splitlines()
    return write('weighted.tlg', ''.join(re.sub(r'( out=(\d+))', lambda m: m[1] + ' param=%d' % (int(m[2]) // 10), line) + '\n' if ' conv2d ' in line else line + '\n' for line in lines))

def planned_ranks(model, count, *args): return json.loads(planned(model, '--ranks', str(count), '--json', '-', *args))

def check_ranks(model, got, count, batches, gpipe=False, chunks=1):
    nodes = load_checker().load(model)
    ranks = got['ranks']
    assert len(ranks) == count == got['rank_count'] and got['micro_batch_count'] == batches, got
    stages = [ranks[k % count]['chunks'][k // count] for k in range(count * chunks)]
    assert [first for first, _ in stages] == [0] + [end for _, end in stages[:-1]] and stages[-1][1] == got['nodes'], stages
    assert [[r['first_node'], r['end_node']] for r in ranks] == stages[:count] and all(len(r['chunks']) == chunks for r in ranks), ranks
    kept = [batches if gpipe else min(batches, count - k) if chunks == 1 else min(chunks * batches, 2 * (count - 1 - k) + (chunks - 1) * count + 1) for k in range(count)]
    assert [r['in_flight_count'] for r in ranks] == kept and got['chunk_count'] == chunks, ranks
    assert got['total_cost'] == max(r['end_cost'] for r in ranks) >= got['lower_bound_cost'], got
    assert sum(r['busy_cost'] for r in ranks) >= got['single_cost'] * (1 - 1e-9) and got['single_cost'] <= got['total_cost'] * count, got
    assert abs(got['bubble_ratio'] - (1 - sum(r['busy_cost'] for r in ranks) / count / got['total_cost'])) < 1e-6, got
    for r in ranks:
        assert r['peak_bytes'] <= r['arena_bytes'] and r['busy_cost'] <= r['end_cost'], r
        assert not got['budget_bytes'] or r['base_bytes'] + r['arena_bytes'] <= got['budget_bytes'], (r, got['budget_bytes'])

def check_lanes(file, count, batches, chunks=1):
    calls = {}
    for rect in xml.parse(file).getroot().iter('{http://www.w3.org/2000/svg}rect'):
        title = rect.find('{http://www.w3.org/2000/svg}title')
        if title is not None: calls.setdefault(rect.get('y'), []).append((rect.get('class'), *map(int, re.findall(r'\d+', title.text))))
    assert len(calls) == count, calls.keys()
    for lane in calls.values():
        lane = [(kind, batch, more[0] if chunks > 1 else 0, *more[-2:]) for kind, batch, *more in lane]
        assert sorted(call[:3] for call in lane) == sorted((kind, k, c) for kind in ('forward', 'backward') for k in range(batches) for c in range(chunks)), lane
        assert all(a[4] <= b[3] for a, b in zip(lane, lane[1:])), lane
        ends = {call[:3]: call[4] for call in lane}
        assert all(ends['forward', k, c] < ends['backward', k, c] for k in range(batches) for c in range(chunks)), lane

def ranks_are_planned_each():
    model = weighted()
    for count, batches, more in [(1, 8, []), (2, 8, []), (4, 8, ['--link', '2GB/s']), (4, 3, ['--gpipe']), (3, 5, ['--align', '64', '--states', '2']), (8, 16, [])]:
        got = planned_ranks(model, count, *more, *(['--micro-batches', str(batches)] if batches != 8 else []), '--svg', path('lanes.svg'))
        check_ranks(model, got, count, batches, '--gpipe' in more)
        check_lanes(path('lanes.svg'), count, batches)
        if count == 1: assert got['total_cost'] == got['single_cost'] and not got['bubble_ratio'] and not got['ranks'][0]['sent_bytes'], got
    one, two = planned_ranks(model, 3, '--micro-batches', '6'), planned_ranks(model, 3, '--micro-batches', '6', '--chunks', '2', '--svg', path('lanes.svg'))
    check_ranks(model, two, 3, 6, chunks=2)
    check_lanes(path('lanes.svg'), 3, 6, 2)
    assert one['schedule'] == '1f1b' and two['schedule'] == 'interleaved' and two['bubble_ratio'] < one['bubble_ratio'] and two['total_cost'] < one['total_cost'], (one, two)
    assert sum(r['sent_bytes'] for r in two['ranks']) > sum(r['sent_bytes'] for r in one['ranks']), (one, two)
    plain, kept = planned_ranks(model, 3), planned_ranks(model, 3, '--states', '2')
    assert [r['base_bytes'] for r in kept['ranks']] == [2 * r['base_bytes'] for r in plain['ranks']] and plain['ranks'][0]['base_bytes'] > 0, kept
    fast, slow = planned_ranks(model, 4, '--link', '100GB/s'), planned_ranks(model, 4, '--link', '1GB/s')
    assert fast['total_cost'] < slow['total_cost'], (fast, slow)
    inference = planned_ranks(model, 2, '--inference', '--svg', path('lanes.svg'))
    assert inference['single_cost'] < plain['single_cost'] and xml.parse(path('lanes.svg')), inference
    out = planned(model, '--ranks', '2')
    assert 'bubble' in out and '1f1b' in out and 'one rank that keeps everything' in out and 'image' in out, out

def a_budget_of_ranks_is_kept_or_the_least_is_named():
    model = weighted()
    whole = planned_ranks(model, 4)
    most = max(r['base_bytes'] + r['arena_bytes'] for r in whole['ranks'])
    got = planned_ranks(model, 4, '--budget', str(most * 6 // 10))
    check_ranks(model, got, 4, 8)
    assert got['total_cost'] > whole['total_cost'], (got, whole)
    tight = ['--gpipe', '--link', '100GB/s', '--budget', str(most * 6 // 10)]
    again, copied = planned_ranks(model, 4, *tight), planned_ranks(model, 4, *tight, '--host-budget', '1GiB')
    assert copied['total_cost'] < again['total_cost'], (again['total_cost'], copied['total_cost'])
    assert any(r['host_peak_bytes'] for r in copied['ranks']) and not any(r['host_peak_bytes'] for r in again['ranks']), copied
    assert 'copies on the host' in planned(model, '--ranks', '4', *tight, '--host-budget', '1GiB')
    code, out, err = run(model, '--ranks', '4', '--budget', '1MiB')
    assert code == 2 and not out and err.count('\n') == 1 and 'rank' in err and 'tl_' not in err.replace('tl_plan: ', '', 1), err

def ways_to_use_ranks_are_compared():
    model = weighted()
    copies = planned_ranks(model, 4, '--data', '--link', '2GB/s')
    every = planned_ranks(model, 4, '--auto', '--link', '2GB/s', '--svg', path('lanes.svg'))
    for got in (every, copies):
        best = got['choices'][got['best']]
        assert best['reason'] == 'chosen' and best['total_cost'] == min(c['total_cost'] for c in got['choices']) >= got['all_ranks_cost'], got
        assert [c['reason'] for c in got['choices']].count('chosen') == 1, got
        assert all(c['total_cost'] == sum(c[part + '_cost'] for part in ('communication', 'bubble', 'idle', 'recompute')) + got['all_ranks_cost'] for c in got['choices']), got
    assert {c['kind'] for c in copies['choices']} == {'none', 'data'} and 'ranks' not in copies, copies
    assert {(c['replica_count'], c['stage_count']) for c in every['choices']} == {(4, 1), (2, 2), (1, 4)}, every
    assert {c['schedule'] for c in every['choices']} == {'1f1b', 'gpipe', 'interleaved'}, every
    # The best is a plan: each rank of a replica, checked like that of a pipeline.
    best = every['choices'][every['best']]
    assert len(every['ranks']) == best['stage_count'] and every['schedule'] == best['schedule'] and every['chunk_count'] == best['chunk_count'], every
    replica = dict(every, rank_count=best['stage_count'], micro_batch_count=8 // best['replica_count'], single_cost=every['single_cost'] // best['replica_count'])
    check_ranks(model, replica, best['stage_count'], 8 // best['replica_count'], best['schedule'] == 'gpipe', chunks=best['chunk_count'])
    check_lanes(path('lanes.svg'), best['stage_count'], 8 // best['replica_count'], best['chunk_count'])
    # A way that is asked for by itself is as good at most, but for what it could search more.
    alone = planned_ranks(model, 4, '--link', '2GB/s')
    assert best['total_cost'] <= alone['total_cost'], (best, alone['total_cost'])
    whole = next(c for c in every['choices'] if c['kind'] == 'data')
    tight = planned_ranks(model, 4, '--auto', '--budget', str(whole['rank_bytes'] // 2))
    assert tight['choices'][tight['best']]['rank_bytes'] <= tight['budget_bytes'] and any(c['reason'] == 'memory' for c in tight['choices']), tight
    sharded = planned_ranks(model, 4, '--auto', '--states', '2', '--budget', str(whole['rank_bytes'] // 2))
    assert any(c['zero_stage'] for c in sharded['choices']), sharded
    copied = planned_ranks(model, 4, '--auto', '--link', '100GB/s', '--budget', str(whole['rank_bytes'] // 2), '--host-budget', '1GiB', '--align', '64')
    assert copied['total_cost'] <= tight['total_cost'] * 1.01, (copied['total_cost'], tight['total_cost'])
    forward = planned_ranks(model, 4, '--auto', '--inference')
    assert forward['choices'][forward['best']]['kind'] == 'data' and not any(c['sent_bytes'] for c in forward['choices'] if c['kind'] == 'data'), forward
    refused(2, ['budget'], model, '--ranks', '2', '--auto', '--budget', '1000')
    out = planned(model, '--ranks', '4', '--auto')
    assert 'chosen' in out and 'replicas' in out and 'bubble' in out and 'idle' in planned(model, '--ranks', '4', '--data'), out

def batches_are_split_over_ranks():
    model = write('batch.tlg', open(weighted()).read().replace('tlg 1\n', 'tlg 1\nbatch 8\n', 1)) if '\nbatch ' not in open(MODEL).read() else weighted()
    batch = int(re.search(r'^batch (\d+)', open(model).read(), re.M)[1])
    got = planned_ranks(model, 3, '--split', '--link', '100GB/s')
    parts = got['micro_batch_count']
    assert 1 < parts and batch % parts == 0, got
    given = planned_ranks(model, 3, '--split', '--micro-batches', str(parts), '--link', '100GB/s', '--svg', path('lanes.svg'))
    check_lanes(path('lanes.svg'), 3, parts)
    assert given['total_cost'] == got['total_cost'] and given['single_cost'] == got['single_cost'], (given['total_cost'], got['total_cost'])
    once = planned_ranks(model, 3, '--split', '--micro-batches', '1', '--link', '100GB/s')
    assert once['total_cost'] > got['total_cost'], (once['total_cost'], got['total_cost'])
    assert sum(r['busy_cost'] for r in got['ranks']) >= got['single_cost'] * (1 - 1e-9), got
    for r in got['ranks']: assert f"batch {batch // parts}\n" in r['graph'] or batch == parts, r['graph'][:80]
    tight = [planned_ranks(MODEL, 4, '--split', '--budget', '600000', *more) for more in ([], ['--micro-batches', '32'])]
    assert tight[0]['total_cost'] <= tight[1]['total_cost'], 'what is chosen is slower than asked for by itself'
    auto = planned_ranks(model, 4, '--split', '--auto', '--link', '100GB/s')
    best = auto['choices'][auto['best']]
    assert batch % auto['micro_batch_count'] == 0 and auto['micro_batch_count'] % best['replica_count'] == 0, best
    refused(1, ['--split', '--inference'], model, '--ranks', '2', '--split', '--inference')
    refused(1, ['--split', 'batch'], write('single.tlg', head(*[line for line in CHAIN[1:] if line != 'batch 4'])), '--ranks', '2', '--split')
    refused(1, ['batch'], model, '--ranks', '2', '--split', '--micro-batches', str(batch + 1))

def hostile_ranks_are_refused():
    cases = [*[([MODEL, '--ranks=' + count], ['--ranks', '1024']) for count in ('0', '-1', '1.5', 'x', '1025', '18446744073709551616')],
             *[([MODEL, '--ranks', '2', '--micro-batches', count], ['--micro-batches', '65535']) for count in ('0', '65536', 'x')],
             ([MODEL, '--ranks', '1000'], ['nodes']), ([MODEL, '--ranks', '2', '--states', '17'], ['--states']), ([MODEL, '--ranks', '2', '--budget', '50%'], ['--budget']),
             ([MODEL, '--ranks', '2', '--link', '0'], ['--link']), ([MODEL, '--ranks', '2', '--link', 'nan'], ['--link']), ([MODEL, '--ranks', '2', '--cost-unit', 'ns'], ['--link']),
             ([MODEL, '--ranks', '2', '--data', '--auto'], ['--data', '--auto']), ([MODEL, '--ranks', '2', '--inference', '--gpipe'], ['--gpipe']),
             *[([MODEL, '--ranks', '2', '--chunks', chunks], ['--chunks', '1024']) for chunks in ('0', '1', '1025', '2.5', 'x')],
             ([MODEL, '--ranks', '2', '--chunks', '2', '--gpipe'], ['--chunks', '--gpipe']), ([MODEL, '--ranks', '1', '--chunks', '2'], ['rank']),
             ([MODEL, '--ranks', '3', '--chunks', '2'], ['multiple', '3']), ([MODEL, '--ranks', '8', '--chunks', '1000'], ['nodes']),
             ([MODEL, '--ranks', '2', '--inference', '--states', '2'], ['--states']),
             ([MODEL, '--ranks', '2', '--host-budget', '50%'], ['--host-budget', '50%']), ([MODEL, '--ranks', '2', '--inference', '--host-budget', '1MiB'], ['--host-budget', '--inference']),
             *[([MODEL, '--ranks', '2', way, *more], [more[0], way]) for way in ('--data', '--auto') for more in (['--gpipe'], ['--chunks', '2'])],
             *[([MODEL, '--ranks', '2', '--data', *more], [more[0], '--data']) for more in (['--align', '64'], ['--svg', path('s')], ['--inference'], ['--host-budget', '1MiB'], ['--split'])],
             *[([MODEL, option], [option.split('=')[0], '--ranks']) for option in ('--data', '--auto', '--gpipe', '--chunks=2')],
             *[([MODEL, '--ranks', '2', *more], [more[0], '--ranks']) for more in (['--codec', 'q8'], ['--codec-rate', '1'], ['--policy', 'revolve'], ['--form', 'once'], ['--seed', '1'],
               ['--schedule', '-'], ['--c-table', '-'], ['--html', '-'], ['--lifetimes', '-'], ['--places', '-'], ['--c-code', 'n'], ['-o', folder], ['--name', 'n'], ['--block', '1MiB'], ['--in-flight', '2'],
               ['--bank', 'any'], ['--precision', 'loss=1'], ['--profiles', 'p'], ['--loss', '1'], ['--pareto'], ['--explain'], ['--front'], ['--live'], ['--order'], ['--compile'], ['--recommend'],
               ['--compact'], ['--no-names'])]]
    for args, words in cases: refused(1, words, *args)
    return '%d command lines' % len(cases)

def head(*lines): return 'tlg 1\n' + ''.join(line + '\n' for line in lines)
INPUT = 'node 0 x input fwd=0 bwd=0 out=4 needs=none in=-'
def node(id, rest='fwd=1 bwd=1 out=4 needs=in in=0', name=None): return 'node %s %s relu %s' % (id, name or 'n%s' % id, rest)

def hostile_models_are_refused():
    cases = {
        'empty file': ('', []),
        'only a comment': ('# nothing\n', []),
        'no nodes': ('tlg 1\n', []),
        'other version': ('tlg 3\n' + INPUT + '\n', ['line 1']),
        'cut': ('tlg 2\n' + INPUT + '\n', ['line 2', 'cut']), 'cut in its last line': ('tlg 2\n' + INPUT + '\nend 1', ['line 3', 'cut']),
        'a billion nodes announced': (head(INPUT, node(1000000000)), ['line 3']),
        'an id beyond 32 bits': (head(INPUT, node(4294967297)), ['line 3']),
        'an id beyond 64 bits': (head(INPUT, node('99999999999999999999999')), ['line 3']),
        'a negative id': (head(INPUT, node(-1)), ['line 3']),
        'a cycle': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in in=2'), node(2, 'fwd=1 bwd=1 out=4 needs=in in=1')), ['line 3']),
        'an edge to itself': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in in=1')), ['line 3']),
        'an output that is none': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in in=0.7')), ['line 3']),
        'needs past the inputs': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in1 in=0')), ['line 3']),
        'needs past the outputs': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=out1 in=0')), ['line 3']),
        'needs beyond 64 bits': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in18446744073709551616 in=0')), ['line 3']),
        'the same name twice': (head(INPUT, node(1, name='a'), node(2, name='a')), ['a']),
        'a negative size': (head(INPUT, node(1, 'fwd=1 bwd=1 out=-4 needs=in in=0')), ['line 3']),
        'a negative cost': (head(INPUT, node(1, 'fwd=-1 bwd=1 out=4 needs=in in=0')), ['line 3']),
        'a size beyond 64 bits': (head(INPUT, node(1, 'fwd=1 bwd=1 out=18446744073709551616 needs=in in=0')), ['line 3']),
        'bytes that sum beyond 64 bits': (head(INPUT, node(1, 'fwd=1 bwd=1 out=18446744073709551615 needs=in in=0'),
                                               node(2, 'fwd=1 bwd=1 out=18446744073709551615 needs=in in=1')), ['64 bits']),
        'costs that sum beyond 64 bits': (head(INPUT, node(1, 'fwd=18446744073709551615 bwd=18446744073709551615 out=4 needs=in in=0')), ['64 bits']),
        'an unknown attribute': (head(INPUT, node(1, 'fwd=1 bwd=1 out=4 needs=in in=0 colour=red')), ['line 3']),
        'a missing attribute': (head(INPUT, node(1, 'fwd=1 out=4 needs=in in=0')), ['line 3']),
        'bytes that are no text': ('tlg 1\n\x01\x02\x7f\n', ['line 2']),
        'a line cut short': ('tlg 1\nnode 0 x inp', ['line 2']),
    }
    for what, (text, words) in cases.items():
        for more in (['--budget', '100'], ['--pareto'], [], ['--budget', '60%', '--inference']):
            refused(1, ['bad.tlg', *words], write('bad.tlg', text), *more)
    return '%d models' % len(cases)

def hostile_options_are_refused():
    good = [MODEL, '--budget', '60%']
    cases = [
        ([], ['model']), (['--budget', '60%'], ['model']), ([''], ['empty']), ([MODEL, MODEL], ['second']),
        ([path('none.tlg')], ['none.tlg']), ([folder], [folder]), ([MODEL, '--budget'], ['--budget']),
        ([MODEL, '--budget', ''], ['--budget']), ([MODEL, '--budget='], ['--budget']), ([MODEL, '--budget', '--explain'], ['--budget']),
        ([MODEL, '--budget', '0'], ['1 byte']), ([MODEL, '--budget', '0%'], ['1 byte']), ([MODEL, '--budget', '0.4'], ['1 byte']),
        ([MODEL, '--budget', '-5'], ['--budget']), ([MODEL, '--budget=-5'], ['--budget']), ([MODEL, '--budget', '60 %'], ['--budget']),
        ([MODEL, '--budget', '1e9'], ['--budget']), ([MODEL, '--budget', '12MiBs'], ['--budget']), ([MODEL, '--budget', '12mib'], ['--budget']),
        ([MODEL, '--budget', 'nan'], ['--budget']), ([MODEL, '--budget', '.'], ['--budget']), ([MODEL, '--budget', '%'], ['--budget']),
        ([MODEL, '--budget', '1..5MiB'], ['--budget']), ([MODEL, '--budget', '0x10'], ['--budget']),
        ([MODEL, '--budget', '18446744073709551616'], ['64 bits']), ([MODEL, '--budget', '16777216TiB'], ['64 bits']),
        ([MODEL, '--budget', '99999999999999999999%'], ['64 bits']), ([MODEL, '--budget', '1' * 600 + '%'], ['--budget']),
        ([*good, '--budget', '50%'], ['twice']), ([*good, '--inference', '--inference'], ['twice']), ([*good, '--inference=1'], ['no value']),
        ([*good, '--frobnicate'], ['--frobnicate']), ([*good, '-x'], ['-x']), ([*good, '--work', '0'], ['--work']),
        ([*good, '--work', '-1'], ['--work']), ([*good, '--work', '1.5'], ['--work']), ([*good, '--work', '18446744073709551616'], ['--work']),
        ([*good, '--json', '-', '--schedule', '-'], ['standard output']), ([*good, '--pareto'], ['--pareto']),
        ([*good, '--codec', 'q9'], ['--codec']), ([*good, '--codec', 'none'], ['--codec']), ([*good, '--codec-rate', '20'], ['--codec']),
        ([*good, '--codec', 'q8', '--inference'], ['--codec']), ([*good, '--codec', 'q8', '--codec-rate', '-1'], ['--codec-rate']),
        ([*good, '--host-budget', '1GiB'], ['--link']), ([*good, '--link', '12'], ['--host-budget']),
        ([*good, '--cost-unit', 'ns'], ['--link']), ([*good, '--policy', 'chen-sqrt', '--host-budget', '1GiB', '--link', '12'], ['--policy']),
        *[([*good, '--host-budget', '1GiB', '--link', link], ['--link']) for link in ('0', '12GB', '12/s', 'GB/s', '-1', '12gb/s', '1e3', '12GB/s/s',
          '0.0000000001', '99999999999999999999', '18446744074GB/s')],
        ([*good, '--host-budget', '1GiB', '--link', '10000000000GB/s', '--cost-unit', 'flop@1.5GFLOPS'], ['64 bits']),
        *[([*good, '--host-budget', '1GiB', '--link', '12', '--cost-unit', unit], ['--cost-unit']) for unit in ('s', 'flop', 'flop@', 'flop@10',
          'flop@0TFLOPS', 'flop@10TFLOP', 'flop@10TBFLOPS', 'NS')],
        ([*good, '--host-budget', '0', '--link', '12'], ['--host-budget']), ([*good, '--host-budget', 'x', '--link', '12'], ['--host-budget']),
        ([*good, '--host-budget', '1GiB', '--link', '1kB/s', '--cost-unit', 'flop@10000TFLOPS'], ['less than a byte']),
        ([MODEL, '--pareto', '--schedule', path('s')], ['--schedule']), ([MODEL, '--pareto', '--c-table', path('s')], ['--c-table']),
        ([MODEL, '--pareto', '--policy', 'chen-sqrt'], ['--policy']), ([MODEL, '--pareto', '--explain'], ['--explain']),
    ]
    for args, words in cases: refused(1, words, *args)
    return '%d command lines' % len(cases)

def extreme_values_are_planned():
    assert json.loads(planned(MODEL, '--budget', '18446744073709551615', '--json', '-'))['cost_ratio'] == 1
    low = json.loads(planned(MODEL, '--budget', '40%', '--work', '1', '--json', '-'))
    assert low['lower_bound_cost'] < low['total_cost'] and low['peak_bytes'] <= low['budget_bytes'], low
    assert low['proven_optimal'] is False and abs(low['gap'] - (low['total_cost'] / low['lower_bound_cost'] - 1)) < 1e-8, low
    planned(MODEL, '--pareto', '--work', '1')
    nothing = write('nothing.tlg', head('node 0 x input fwd=0 bwd=0 out=0 needs=none in=-', 'node 1 y relu fwd=0 bwd=0 out=0 needs=in in=0'))
    for more in (['--budget', '1'], ['--budget', '1', '--explain'], [], ['--inference']): planned(nothing, *more)
    for more in (['--svg', path('n.svg')], ['--html', path('n.html')], ['--json', path('n.json')]): planned(nothing, '--pareto', *more)
    xml.parse(path('n.svg')); check_page(path('n.html'))
    only = write('only.tlg', head(INPUT))
    for more in (['--budget', '4'], ['--budget', '4', '--html', path('o.html')], ['--budget', '4', '--explain'], [], ['--pareto']): planned(only, *more)

def files_are_whole_or_absent():
    target = write('kept', 'before')
    args = [MODEL, '--budget', '10', '--schedule', target]
    assert run(*args)[0] == 2 and open(target).read() == 'before'
    planned(MODEL, '--budget', '60%', '--schedule', target)
    assert open(target).read().startswith('F ')
    assert os.listdir(folder) == ['kept'], os.listdir(folder)
    for option in ('--schedule', '--json', '--svg', '--html', '--c-table'):
        refused(1, ['nowhere'], MODEL, '--budget', '60%', option, path('nowhere/file'))
    for option in ('--json', '--svg', '--html'): refused(1, ['nowhere'], MODEL, '--pareto', '--work', '1', option, path('nowhere/file'))
    if os.path.exists('/dev/full'):
        for option in ('--schedule', '--json', '--html'):
            refused(1, ['/dev/full'], MODEL, '--budget', '60%', option, '/dev/full')
        with open('/dev/full', 'w') as full:
            for more in (['--budget', '60%'], ['--budget', '60%', '--schedule', '-'], ['--pareto', '--work', '1'], ['--help']):
                done = subprocess.run([program, MODEL, *more], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
                assert done.returncode == 1 and done.stderr == 'tl_plan: standard output: cannot be written\n', (more, done)

def a_file_that_may_not_be_written_is_kept():
    with open(MODEL) as file: model = write('model.tlg', file.read())
    copy, target = shutil.copy(program, path('program')), write('kept', 'before')
    os.chmod(copy, 0o755)
    os.chmod(target, 0o444)
    os.chmod(folder, 0o777)
    nobody = {} if os.getuid() else {'user': 65534}         # root may write whatever it likes
    done = subprocess.run([copy, model, '--budget', '55%', '--schedule', target], capture_output=True, text=True, timeout=300, **nobody)
    if nobody and done.returncode == 127: raise Skipped('root alone may read the library that the program is linked with')
    assert done.returncode == 1 and done.stderr == 'tl_plan: %s: cannot be written: Permission denied\n' % target, done
    assert open(target).read() == 'before' and sorted(os.listdir(folder)) == ['kept', 'model.tlg', 'program'], os.listdir(folder)

def outputs_that_would_lose_a_file_are_refused():
    with open(MODEL) as file: text = file.read()
    def lay_out():
        for name in os.listdir(folder): os.remove(path(name))
        write('m.tlg', text); write('p', planned('--default-profiles')); write('old', 'before')
        os.symlink('m.tlg', path('soft')); os.symlink('old', path('soft_old')); os.symlink('new', path('soft_new'))
        os.link(path('m.tlg'), path('hard')); os.link(path('old'), path('hard_old'))
        os.mkfifo(path('fifo'))
    m = path('m.tlg')
    inputs = [[m, '--json', m], [m, '--svg', path('./m.tlg')], [m, '--html', path('soft')], [m, '--c-table', path('hard')], [path('soft'), '--schedule', m],
              [path('hard'), '--json', path('soft')], [m, '--pareto', '--json', m], [m, '--front', '--svg', m],
              [m, '--precision', 'loss=0.01', '--profiles', path('p'), '--json', path('p')]]
    pairs = [('old', 'old'), ('old', './old'), ('new', 'new'), ('new', '../%s/new' % os.path.basename(folder)), ('old', 'soft_old'), ('old', 'hard_old'), ('new', 'soft_new'),
             ('fifo', 'fifo'), ('soft_old', 'hard_old')]
    count = 0
    def kept(args, words, **more):
        nonlocal count
        refused(1, words, *args, **more)
        assert open(m).read() == text and open(path('old')).read() == 'before', args
        assert sorted(os.listdir(folder)) == names, (args, os.listdir(folder))
        count += 1
    lay_out()
    names = sorted(os.listdir(folder))
    for args in inputs: kept([*args, *([] if '--precision' in args or '--front' in args or '--pareto' in args else ['--budget', '60%'])], ['is read'])
    for a, b in pairs: kept([m, '--budget', '60%', '--json', path(a), '--html', path(b)], ['--html', '--json', 'same file'])
    for option in ('--schedule', '--json', '--c-table', '--svg', '--html'):
        kept([m, '--budget', '60%', option, folder], [folder, 'directory'])
        kept([m, '--budget', '60%', option, folder + '/'], [folder, 'directory'])
    code = [m, '--inference', '--c-code', 'net', '-o', folder, '--weights', path('p'), '--ranges', path('p'), '--kernels', 'own']
    for end in ('.h', '.c', '_constants.c', '_scales.h', '_kernels.c'):
        kept([*code, '--json', path('net' + end)], ['--c-code', '--json', 'same file'])
        os.link(path('p'), path('net' + end)); names = sorted(os.listdir(folder))
        kept(code, ['--c-code', 'is the file of --weights, which is read'])
        os.remove(path('net' + end)); names = sorted(os.listdir(folder))
    for b in ('-', '/dev/stdout', '/dev/fd/1'): kept([m, '--budget', '60%', '--json', '-', '--svg', b], ['standard output'])
    with open(m) as file:
        done = subprocess.run([program, '-', '--budget', '60%', '--json', path('soft')], stdin=file, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and 'is read' in done.stderr and open(m).read() == text, done
    with open(m, 'a') as file:
        done = subprocess.run([program, m, '--budget', '60%'], stdout=file, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and 'is read' in done.stderr and open(m).read() == text, done
    planned(m, '--budget', '60%', '--json', '/dev/null', '--svg', '/dev/null')
    return '%d command lines' % count

def pipes_and_links_are_written_through():
    wanted = planned(MODEL, '--budget', '60%', '--schedule', '-')
    os.mkfifo(path('fifo'))
    reader = subprocess.Popen(['cat', path('fifo')], stdout=subprocess.PIPE, text=True)
    planned(MODEL, '--budget', '60%', '--schedule', path('fifo'))
    assert reader.communicate(timeout=60)[0] == wanted
    os.remove(path('fifo'))
    os.mkdir(path('far'))
    write('far/old', 'before')
    os.chmod(path('far/old'), 0o640)
    os.symlink('far/old', path('soft')); os.symlink('soft', path('twice')); os.symlink('far/new', path('dangling')); os.symlink('loop', path('loop'))
    for link, name in [('soft', 'far/old'), ('twice', 'far/old'), ('dangling', 'far/new')]:
        planned(MODEL, '--budget', '60%', '--schedule', path(link))
        assert os.path.islink(path(link)) and not os.path.islink(path(name)) and open(path(name)).read() == wanted, link
        write(name, 'before')
    assert os.stat(path('far/old')).st_mode & 0o777 == 0o640
    refused(1, ['loop'], MODEL, '--budget', '60%', '--schedule', path('loop'))
    assert sorted(os.listdir(path('far'))) == ['new', 'old']
    for name in ('/dev/stdout', '/dev/fd/1'):       # the report is left out, as beside -
        assert planned(MODEL, '--budget', '60%', '--schedule', name) == wanted, name
        with open(path('out'), 'w') as out: subprocess.run([program, MODEL, '--budget', '60%', '--schedule', name], stdout=out, check=True, timeout=60)
        assert open(path('out')).read() == wanted, name
    with open(path('out'), 'w') as out: subprocess.run([program, MODEL, '--budget', '60%', '--schedule', path('out')], stdout=out, check=True, timeout=60)
    assert open(path('out')).read() == wanted

def an_interrupt_ends_with_the_best_so_far():
    model = reference('models/unet.tlg')
    child = subprocess.Popen([program, model, '--budget', '26%', '--work', '100000000000', '--json', '-'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    got = json.loads(out)
    assert child.returncode == 0 and 'stopped early' in err and got['peak_bytes'] <= got['budget_bytes'], (out, err)

def an_error_is_explained_by_its_numbers():
    lines = [planned('--explain-error', str(function << 16 | 0x0302)).strip() for function in (1, 2, 5)]
    assert lines == ['%s: outputs: there must be at least one (node 0)' % name
                     for name in ('tl_init_arena', 'tl_check_strategy', 'tl_parse_strategy_json')], lines
    assert planned('--explain-error', str(6 << 16 | 0x0302), '7', '9').endswith(' one (node 7, line 9)\n')
    assert planned('--explain-error', '0x60302', '7', '9') == planned('--explain-error', str(6 << 16 | 0x0302), '7', '9')
    done = run(MODEL, '--budget', '10', '--json', '-')
    assert 'no plan fits 10 bytes; the least that one was found for is ' in done[2], done
    for limit, name in enumerate(('budget_bytes', 'device_capacity_bytes', 'backend: capacity_bytes')):
        sentence = planned('--explain-error', hex(limit << 24 | 0x320601), '10', '96')
        assert sentence.startswith('tl_plan_remat: %s: 10 bytes are too few for any plan; ' % name), sentence
    assert planned('--explain-error', str(6 << 16 | 0x0302), '18446744073709551615').endswith(' (node none)\n')
    for numbers in ([], ['1', '2', '3', '4'], ['x'], ['-1'], ['0'], ['65536'], ['4294967296'], ['99999999999999999999'], ['0x'], ['0x10000000000000000'], ['0x1g'], ['0x7320601'], ['0x1060302'], ['65793', 'y']):
        refused(1, ['--explain-error'], '--explain-error', *numbers)

def help_names_every_option():
    out = planned('--help')
    for option in ('--budget', '--inference', '--host-budget', '--link', '--codec', '--codec-rate', '--cost-unit', '--policy', '--order', '--form', '--work', '--seed', '--schedule', '--json', '--lifetimes', '--places', '--c-table', '--compact', '--no-names', '--name', '--svg', '--html', '--pareto', '--explain', '--bank', '--block', '--in-flight',
                   '--c-code', '-o', '--weights', '--ranges', '--kernels', '--states', '--optimizer', '--rows', '--slots', '--updates', '--clip', '--update-rate', '--micro-batches', '--precision', '--front', '--profiles', '--default-profiles', '--compile', '--loss', '--ram', '--flash', '--minimize', '--split', '--recommend', '--ranks', '--gpipe', '--chunks', '--data', '--auto', '--explain-error', '--help'):
        assert '  ' + option + ' ' in out, option
    assert max(map(len, out.splitlines())) <= 100

FACTS = [small_graphs_reach_the_optimum, json_holds_the_figures, keep_all_is_shown_without_a_budget,
         an_infeasible_budget_names_the_least_and_the_node, budgets_are_exact, one_work_limit_gives_one_plan, a_seed_gives_another_plan,
         standard_input_is_a_model, policies_plan_or_say_what_they_need, negative_numbers_are_values,
         tables_compile, generated_code_compiles_and_links, operands_of_code_are_aligned, frozen_weights_take_no_ram, inputs_have_the_format_that_saves_most, host_copies_take_what_the_link_takes, updates_are_planned, gradients_in_pieces_are_named, regions_of_rows_are_planned, steps_are_cut_into_blocks_of_rows, steps_in_blocks_of_rows_are_as_cheap_as_the_prototype, inputs_die, long_units_of_cost_wait_no_longer, compressed_copies_are_exact_and_pay, an_explanation_adds_up, curves_fall_and_bounds_stay_below, small_curves_hold_the_optimum,
         choices_are_what_they_say, small_choices_are_the_best, measured_nodes_replace_their_profile, machines_say_where_their_speeds_come_from, no_rounding_exceeds_a_limit, choices_are_planned_in_memory, shares_are_of_the_model_as_it_was_read, steps_are_counted_from_0, places_pass_the_independent_checker, banks_and_blocks_pass_the_independent_checker, steps_in_flight_keep_what_they_use, an_order_takes_the_least_bytes,
         limits_that_cannot_be_held_are_named, fronts_are_shown, limits_are_kept_together, what_is_compiled_keeps_limits, limits_hold_for_regions_in_place, fronts_of_limits_are_shown, hostile_limits_are_refused, hostile_precisions_are_refused,
         compiled_plans_are_what_they_say, compiled_reports_and_files_are_whole, a_compiled_budget_that_is_too_small_names_the_least, compiled_curves_fall,
         a_recommendation_shows_what_was_compiled, compiling_excludes_what_it_chooses, an_interrupted_compilation_ends_with_the_best_so_far,
         ranks_are_planned_each, a_budget_of_ranks_is_kept_or_the_least_is_named, ways_to_use_ranks_are_compared, batches_are_split_over_ranks, hostile_ranks_are_refused,
         pictures_are_xml, pages_are_whole, hostile_models_are_refused, hostile_options_are_refused,
         extreme_values_are_planned, files_are_whole_or_absent, a_file_that_may_not_be_written_is_kept, outputs_that_would_lose_a_file_are_refused, pipes_and_links_are_written_through,
         an_interrupt_ends_with_the_best_so_far, an_error_is_explained_by_its_numbers,
         help_names_every_option]

def main():
    global program, folder, every
    ap = argparse.ArgumentParser(); ap.add_argument('program', nargs='?', default='build/tl_plan'); ap.add_argument('--every', type=int, default=1)
    a = ap.parse_args()
    program, every = os.path.abspath(a.program), a.every
    failed = 0
    for fact in FACTS:
        begin = time.time()
        with tempfile.TemporaryDirectory() as folder:
            try:
                note = fact() or ''
                print('ok    %-52s %6.1f s  %s' % (fact.__name__, time.time() - begin, note), flush=True)
            except Skipped as why: print('SKIPPED %s: %s' % (fact.__name__, why))
            except Exception as error:          # a fact that does not hold, or a program that does not answer
                failed += 1
                print('FAIL  %s: %s %s' % (fact.__name__, type(error).__name__, error), flush=True)
    print('%d facts, %d do not hold' % (len(FACTS), failed))
    return 1 if failed else 0

if __name__ == '__main__': sys.exit(main())
