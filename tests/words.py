#!/usr/bin/env python3
"""words.py: words that CONTRIBUTING's glossary has retired stand nowhere: not in names, comments or sentences of the parts, and not
in pages or examples. What is found is printed; exit status 0 nothing. CHANGES.md and SEEDS.md tell of the past."""
import glob, re, sys

def retired():
    """The words of the last column of the glossary."""
    with open('CONTRIBUTING.md', encoding='utf-8') as f: text = f.read()
    rows = re.search(r'\| word \| meaning \| not \|\n\|[-|]+\|\n((?:\|.*\n)+)', text).group(1).splitlines()
    return [word.strip() for row in rows for word in row.split('|')[3].split(',') if word.strip()]

def main():
    words = retired()
    if len(words) < 15: sys.exit('CONTRIBUTING.md: the glossary has retired fewer than 15 words')
    plain = [w for w in words if '_' not in w]      # in any case, and as a part of a name: weave_plan
    names = [w.replace('*', r'\w*') for w in words if '_' in w]
    pattern = re.compile(r'(?i:(?<![A-Za-z])(?:%s)(?![A-Za-z]))|\b(?:%s)\b' % ('|'.join(plain), '|'.join(names)))
    paths = sorted(glob.glob('src/**/*.[ch]', recursive=True) + glob.glob('examples/*.[ch]') + ['README.md', 'GUIDE.md', 'FIGURES.md'])
    found = 0
    for path in paths:
        with open(path, encoding='utf-8') as f:
            for number, line in enumerate(f, 1):
                for match in pattern.finditer(line):
                    found += 1
                    print('%s:%d: %s' % (path, number, match.group(0)))
    print('%d retired words, found %d times' % (len(words), found))
    return found > 0

if __name__ == '__main__': sys.exit(main())
