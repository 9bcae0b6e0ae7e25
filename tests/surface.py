#!/usr/bin/env python3
"""surface.py [--list]: every public function is shown somewhere that a user reads.

A function of tl_strategy.h or tl_vk_backend.h counts as shown where its name stands in an example, in README.md, GUIDE.md,
SEEDS.md or, for functions of the first header, in a part of the second: that one is a backend as anybody may write it.
Tests do not count. --list prints each function with the places. Exit status 0 all are shown, 1 not.
"""
import collections, glob, re, sys

DECLARATION = re.compile(r'^(TLDEF|TL_EXPERIMENTAL)\b[^;(]*?\b(tl_\w+)\(', re.M)

def words(paths):
    """name -> the files that have it"""
    found = collections.defaultdict(list)
    for path in paths:
        with open(path, encoding='utf-8') as f:
            for name in set(re.findall(r'\btl_\w+\b', f.read())): found[name].append(path)
    return found

def declared(paths):
    """name -> TLDEF or TL_EXPERIMENTAL"""
    found = {}
    for path in paths:
        with open(path, encoding='utf-8') as f:
            for macro, name in DECLARATION.findall(f.read()): found[name] = macro
    return found

def main():
    shown = words(sorted(glob.glob('examples/*.[ch]') + glob.glob('examples/*.py') + glob.glob('README.md') + glob.glob('GUIDE.md') + glob.glob('SEEDS.md')))
    backend = words(sorted(glob.glob('src/vk/*.c')))
    missing = 0
    for header, parts in ('tl_strategy.h', 'src/[0-9]*/**/*.h'), ('tl_vk_backend.h', 'src/vk/*.h'):
        functions = declared(glob.glob(parts, recursive=True))
        if not functions: sys.exit(header + ': no public function found')
        places = {name: shown[name] + (backend[name][:1] if header == 'tl_strategy.h' else []) for name in functions}
        nowhere = sorted(name for name in functions if not places[name])
        if '--list' in sys.argv:
            for name in sorted(functions): print('%-40s %-15s %s' % (name, functions[name], ' '.join(places[name]) or '-'))
        print('%s: %d public functions, %d of them experimental, %d shown nowhere' %
              (header, len(functions), list(functions.values()).count('TL_EXPERIMENTAL'), len(nowhere)))
        for name in nowhere: print('    ' + name)
        missing += len(nowhere)
    return missing > 0

if __name__ == '__main__': sys.exit(main())
