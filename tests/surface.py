#!/usr/bin/env python3
"""surface.py [--list]: every public function is shown somewhere that a user reads.

A function of tl_strategy.h or tl_vk_backend.h (tests/api.py) counts as shown where its name stands in an example, in README.md or
in GUIDE.md. Tests, other parts and the history of the project (SEEDS.md, CHANGES.md) do not count. --list prints each function with
the places. What src/00_start.h names first must be functions, and is no more than a page. Exit status 0 all of this holds, 1 not.
"""
import collections, glob, re, sys
import api

def words(paths):
    """name -> the files that have it"""
    found = collections.defaultdict(list)
    for path in paths:
        for name in set(re.findall(r'\btl_\w+\b', api.read(path))): found[name].append(path)
    return found

def main():
    shown = words(sorted(glob.glob('examples/*.[ch]') + glob.glob('examples/*.py') + ['README.md', 'GUIDE.md']))
    start = set(words(['src/00_start.h']))
    missing = len(start) > 32
    for header in api.read_api()['headers']:
        name = header['name']
        functions = {f['name']: f for section in header['sections'] for f in section['functions']}
        if not functions: sys.exit(name + ': no public function found')
        places = {f: shown[f] for f in functions}
        start -= set(functions)
        nowhere = sorted(f for f in functions if not places[f])
        if '--list' in sys.argv:
            for f in sorted(functions): print('%-40s %-15s %s' % (f, 'experimental' if functions[f]['experimental'] else '',
                                                                  ' '.join(places[f]) or '-'))
        print('%s: %d public functions, %d of them experimental, %d shown nowhere' %
              (name, len(functions), sum(f['experimental'] for f in functions.values()), len(nowhere)))
        for f in nowhere: print('    ' + f)
        missing += len(nowhere)
    for f in sorted(start): print('src/00_start.h: %s is no public function' % f)
    return missing > 0 or bool(start)

if __name__ == '__main__': sys.exit(main())
