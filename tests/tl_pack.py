#!/usr/bin/env python3
"""tl_pack.py [PROGRAM]

What build/tl_pack promises, held against the program as it runs: layouts that an independent check accepts, the public
instances at their best known heights, JSON and SVG that other parsers read, and one sentence with line and field and the
right exit code for every kind of bad input.
Exit status 0 all facts hold, 1 not; what lacks the reference data (TL_SHARED, else ../shared) prints SKIPPED.
"""
import csv, io, json, os, random, signal, subprocess, sys, tempfile, time
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.environ.get('TL_SHARED', os.path.join(HERE, '..', '..', 'shared'))
EXAMPLE = os.path.join(HERE, '..', 'examples', 'buffers.csv')
KEYS = {'buffers', 'capacity', 'height', 'lower_bound', 'proven', 'work', 'seconds'}
BEST = dict(A=1048576, B=1048576, C=1039360, D=1048576, E=1048576, F=1048576, G=1048576, H=1048576, I=1048576, J=1039360, K=1048576)
program = folder = None

class Skipped(Exception): pass

def run(*args, text=None, timeout=300):
    done = subprocess.run([program, *args], input=text, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout, done.stderr

def refused(code, words, *args, text=None):
    """One sentence on standard error, nothing on standard output."""
    got, out, err = run(*args, text=text)
    assert got == code and not out, (args, text and text[:100], got, out, err)
    assert err.startswith('tl_pack: ') and err.count('\n') == 1 and err.endswith('\n'), (args, err)
    assert all(word in err for word in words), (args, words, err)

def path(name): return os.path.join(folder, name)

def reference(name):
    found = os.path.join(ROOT, name)
    if not os.path.exists(found): raise Skipped('no reference data (%s)' % name)
    return found

def rows_of(text): return list(csv.DictReader(io.StringIO(text)))

# What a row takes at a time, from its offset on; None = nothing.
def taken(row, t):
    if not int(row['lower']) <= t < int(row['upper']): return None
    for gap in (row.get('gaps') or '').split():
        span, _, part = gap.partition('@')
        lower, upper = map(int, span.split('-'))
        if lower <= t < upper:
            first, end = map(int, part.split(':')) if part else (0, 0)
            return (int(row['offset']) + first, int(row['offset']) + end) if first < end else None
    return int(row['offset']), int(row['offset']) + int(row['size'])

# The height of a layout, after a check of every pair at every time.
def checked(text):
    rows = rows_of(text)
    for t in sorted({int(row['lower']) for row in rows} | {int(x) for row in rows for g in (row.get('gaps') or '').split() for x in g.partition('@')[0].split('-')}):
        spans = sorted(span for span in (taken(row, t) for row in rows) if span)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), (t, spans)
    for row in rows: assert int(row['offset']) % int(row.get('alignment') or 1) == 0, row
    return max(int(row['offset']) + int(row['size']) for row in rows)

def public_instances_reach_their_best_known_heights():
    reference('layout/README.md')
    most = 0
    for name, height in BEST.items():
        source = reference('layout/%s.1048576.csv' % name)
        capacity = 1048576 if name in 'DE' else height
        code, out, err = run(source, '--capacity', str(capacity), '--out', path('out.csv'), '--json', '-', '--work', '40000000')
        got = json.loads(out)
        assert code == 0 and set(got) == KEYS and not err, (name, code, out, err)
        assert got['height'] <= height and got['proven'] == (name not in 'DJ'), (name, got)
        most = max(most, got['seconds'])
        done = subprocess.run([sys.executable, reference('tools/validate_layout.py'), source, path('out.csv'), '--capacity', '1048576'],
                              capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout.startswith('VALID'), (name, done.stdout)
        assert checked(open(path('out.csv')).read()) == got['height']
    return '%d instances, %.2f s at most' % (len(BEST), most)

def random_inputs_give_valid_layouts():
    r = random.Random(3)
    for i in range(60):
        names = ['id', 'lower', 'upper', 'size'] + [n for n in ('alignment', 'hint', 'gaps') if r.random() < 0.6]
        r.shuffle(names)
        lines = [','.join(names)]
        for k in range(r.randint(1, 40)):
            lower = r.randint(0, 30); upper = lower + r.randint(1, 12); size = r.randint(0, 200); gaps = []; at = lower
            while at < upper and r.random() < 0.5:
                end = r.randint(at + 1, upper); first = r.randint(0, size); last = r.randint(first, size)
                gaps.append('%d-%d' % (at, end) + ('@%d:%d' % (first, last) if r.random() < 0.5 else '')); at = end + r.randint(0, 2)
            r.shuffle(gaps)
            values = dict(id='b%d' % k, lower=lower, upper=upper, size=size, alignment=1 << r.randint(0, 6), hint=r.randint(-1, 9), gaps=' '.join(gaps))
            lines.append(','.join(str(values[n]) for n in names))
        code, out, err = run('-', '--out', '-', text='\n'.join(lines) + '\n')
        assert code == 0 and not err, (lines, err)
        height = checked(out)
        code, again, err = run('-', '--out', '-', '--capacity', str(height), text=out)     # its own layout, with all offsets given
        assert code == 0 and again == out, (out, again, err)

def json_and_picture_hold_the_layout():
    code, out, err = run(EXAMPLE, '--capacity', '4096', '--json', '-', '--svg', path('x.svg'))
    got = json.loads(out)
    assert code == 0 and set(got) == KEYS and got['buffers'] == 8 and got['capacity'] == 4096, got
    assert got['proven'] and got['height'] == got['lower_bound'] == 3472, got
    boxes = xml.parse(path('x.svg')).getroot().findall('{http://www.w3.org/2000/svg}rect')
    assert len(boxes) == 11, len(boxes)     # 8 buffers, one with a piece more, one with two
    assert json.loads(run(EXAMPLE, '--json', '-')[1])['capacity'] is None

def what_does_not_fit_names_height_and_bound():
    refused(2, ['no layout fits in 3471 bytes', 'one of 3472 was', 'less than 3472'], EXAMPLE, '--capacity', '3471')
    code, out, err = run(EXAMPLE, '--capacity', '3471', '--json', '-')
    assert code == 2 and json.loads(out)['lower_bound'] == 3472 and err.count('\n') == 1, (out, err)

def a_pin_above_the_capacity_is_no_layout():
    rows = 'id,lower,upper,size,alignment,offset\nview,0,2,0,1,%d\ndata,0,2,64,1,%d\n'
    code, out, err = run('-', '--out', '-', text=rows % (32, 0))
    assert code == 0 and ['view', '32'] == [out.split('\n')[1].split(',')[k] for k in (0, -1)], (code, out, err)    # of no bytes
    for row, capacity in ((rows % (0, 32), 95), (rows % (96, 0), 95)):
        code, out, err = run('-', '--capacity', str(capacity), text=row)
        assert code == 2 and 'the buffer ends above the capacity' in err and err.count('\n') == 1, (code, err)

def the_work_limit_decides_and_nothing_else():
    source = reference('layout/E.1048576.csv')
    a, b = [run(source, '--work', '3000000', '--out', '-')[1] for k in range(2)]
    assert a == b and checked(a) > 1048576
    refused(2, ['no layout was found in 1048576 bytes', 'none takes less than 1048576'], source, '--capacity', '1048576', '--work', '100000')

def an_interrupt_gives_the_lowest_so_far():
    source = reference('layout/D.1048576.csv')
    child = subprocess.Popen([program, source, '--work', '1000000000000', '--out', path('out.csv')], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and '(interrupted)' in out and checked(open(path('out.csv')).read()) < 1200000, (child.returncode, out, err)

def bad_input_is_one_sentence_with_line_and_field():
    head = 'id,lower,upper,size\n'
    for words, text in [
        (['is empty'], ''), (['line 1: size: the column is missing'], 'id,lower,upper\n'), (['line 1: foo: no column'], 'id,foo,upper,size\n'),
        (['line 1: lower: the column is given twice'], 'id,lower,start,size\n'), (['line 2: has 3 fields'], head + 'a,1,2\n'),
        (['line 2: has 5 fields'], head + 'a,1,2,3,4\n'), (['line 3: upper: must be above lower'], head + 'a,1,2,3\nb,5,5,1\n'),
        (['line 2: upper: must be above lower'], head + 'a,5,2,3\n'), (['line 2: size: must be a whole number'], head + 'a,1,2,-3\n'),
        (['line 2: lower: must be a whole number'], head + 'a,-1,2,3\n'), (['line 2: size'], head + 'a,1,2,3.5\n'), (['line 2: size'], head + 'a,1,2,99999999999999999999\n'),
        (['line 4: id: another'], head + 'a,1,2,3\nb,1,2,3\na,4,5,6\n'), (['line 2: id: must not be empty'], head + ',1,2,3\n'),
        (['line 2: alignment: must be a power of two'], 'id,lower,upper,size,alignment\na,1,2,3,24\n'),
        (['line 2: alignment: must be a power of two'], 'id,lower,upper,size,alignment\na,1,2,3,0\n'),
        (['line 2: offset: must be a multiple'], 'id,lower,upper,size,alignment,offset\na,1,2,3,16,8\n'),
        (['line 2: offset: must be a whole'], 'id,lower,upper,size,offset\na,1,2,3,-8\n'),
        (['line 2: hint'], 'id,lower,upper,size,hint\na,1,2,3,x\n'), (['line 2: gaps: must be like'], 'id,lower,upper,size,gaps\na,1,9,3,4\n'),
        (['line 2: gaps: must be like'], 'id,lower,upper,size,gaps\na,1,9,3,4-5@1\n'), (['line 2: gaps: a gap must lie in'], 'id,lower,upper,size,gaps\na,1,9,3,4-12\n'),
        (['line 2: gaps: a gap must end'], 'id,lower,upper,size,gaps\na,1,9,3,4-4\n'), (['line 2: gaps: two gaps overlap'], 'id,lower,upper,size,gaps\na,1,9,3,5-7 4-6\n'),
        (['line 2: gaps: a gap leaves more'], 'id,lower,upper,size,gaps\na,1,9,3,5-7@1:4\n'), (['line 2: gaps: what a gap leaves'], 'id,lower,upper,size,gaps\na,1,9,3,5-7@2:1\n'),
        (['line 3: offset: shares bytes with a'], 'id,lower,upper,size,offset\na,1,9,3,0\nb,2,3,4,2\n'),
        (['pinned to the same bytes'], 'id,lower,upper,size,offset,gaps\na,1,9,3,0,4-5\nb,2,3,4,2,\n'),
        (['line 2: size: must be a whole number from 0 to'], head + 'a,1,2,9223372036854775807\n'),
        (['line 3: size: all sizes together'], head + ''.join('%d,1,2,2000000000000000000\n' % i for i in range(6))), (['line 2: is longer'], head + 'a' * 70000)]:
        refused(1, words, '-', text=text)
    refused(2, ['line 2: offset: the buffer ends above'], '-', '--capacity', '9', text='id,lower,upper,size,offset\na,1,2,3,8\n')
    refused(1, ['line 2097154: more than 2097152 buffers'], '-', text=head + ''.join('%d,1,2,3\n' % i for i in range(2100000)))
    refused(1, ['cannot be opened'], path('none.csv'))
    refused(1, ['an input is missing'])
    refused(1, ['only one input'], EXAMPLE, EXAMPLE)
    refused(1, ['--foo: no such option'], EXAMPLE, '--foo')
    refused(1, ['--capacity 0: must be'], EXAMPLE, '--capacity', '0')
    refused(1, ['--capacity 1x: must be'], EXAMPLE, '--capacity', '1x')
    refused(1, ['--work: takes a value'], EXAMPLE, '--work')
    refused(1, ['--work: is given twice'], EXAMPLE, '--work', '1', '--work', '1')
    refused(1, ['only one output'], EXAMPLE, '--json', '-', '--out', '-')
    for option in ('--out', '--json', '--svg'): refused(1, ['cannot be written'], EXAMPLE, option, path('none/x'))
    with open(path('own.csv'), 'w') as file: file.write(head + 'a,1,2,3\n')
    os.symlink(path('own.csv'), path('link.csv'))
    for option in ('--out', '--json', '--svg'): refused(1, [option, 'is the input'], path('own.csv'), option, path('link.csv'))
    refused(1, ['--json', 'is the file of --out, too'], path('own.csv'), '--out', path('new'), '--json', path('new'))
    with open(path('own.csv')) as file: assert file.read() == head + 'a,1,2,3\n'

def other_names_and_line_ends_are_read():
    text = '\ufeffid,start,end,size\r\na,0,4,8\r\n\r\nb,4,6,8\r\n'    # end is live, too
    code, out, err = run('-', '--out', '-', text=text)
    assert code == 0 and [row['upper'] for row in rows_of(out)] == ['5', '7'] and checked(out) == 16, (out, err)
    code, out, err = run('--help')
    assert code == 0 and all(word in out for word in ('--capacity', '--svg', '--json', '--work', '--out', 'gaps')), out

def main():
    global program, folder
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, '..', 'build', 'tl_pack'))
    facts = [public_instances_reach_their_best_known_heights, random_inputs_give_valid_layouts, json_and_picture_hold_the_layout,
             what_does_not_fit_names_height_and_bound, a_pin_above_the_capacity_is_no_layout, the_work_limit_decides_and_nothing_else, an_interrupt_gives_the_lowest_so_far,
             bad_input_is_one_sentence_with_line_and_field, other_names_and_line_ends_are_read]
    with tempfile.TemporaryDirectory() as folder:
        for fact in facts:
            try: print('%s%s' % (fact.__name__, ': ' + note if (note := fact()) else ''))
            except Skipped as reason: print('SKIPPED %s: %s' % (fact.__name__, reason))

main()
