#!/usr/bin/env python3
"""Sets of options in which every three options take all eight combinations of set and not set (a covering array of strength
three): what shows with two options and is hidden by a third shows in one of them. One line a set.

    tests/option_sets.py TL_NO_TEXT TL_NO_STDIO ...
"""
import itertools, random, sys

def combinations_in(row, width):
    return {(some, tuple(row[i] for i in some)) for some in itertools.combinations(range(len(row)), width)}

def every_combination(count, width):
    return {(some, bits) for some in itertools.combinations(range(count), width) for bits in itertools.product((0, 1), repeat=width)}

def covering_sets(count, width, tries=60):
    """Rows of 0 and 1, each the best of some tries: one combination that is left, the others at random."""
    left, draw, rows = every_combination(count, width), random.Random(1), []
    while left:
        best, covered, order = None, set(), sorted(left)
        for _ in range(tries):
            row = [draw.randrange(2) for _ in range(count)]
            for i, bit in zip(*draw.choice(order)): row[i] = bit
            new = combinations_in(row, width) & left
            if len(new) > len(covered): best, covered = row, new
        rows.append(best)
        left -= covered
    return rows

def main():
    options = sys.argv[1:]
    width = min(3, len(options))
    rows = covering_sets(len(options), width)
    assert set().union(*(combinations_in(row, width) for row in rows)) == every_combination(len(options), width)
    for row in rows: print(' '.join(option for option, is_set in zip(options, row) if is_set))

if __name__ == '__main__': main()
