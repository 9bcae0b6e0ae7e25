#!/usr/bin/env python3
"""Lines and branches of the parts that tests run, and which tests run which part.

    tests/coverage.py DIRECTORY             what the programs there have counted (tests/coverage.sh runs them): a table of the
                                            parts; fails below the limits, or where tests/map.txt is not true
    tests/coverage.py DIRECTORY --map       write tests/map.txt anew
    tests/coverage.py DIRECTORY --lines     the lines that no test runs      --branches  and the branches that go one way

A branch is one outcome of one condition, as clang counts them: `a && b` has four. tests/uncovered.txt says why a line, or a
branch of it, is never run: `<the line's text> => <reason>`, or `<regular expression> =~> <reason>` for all like it.
tests/map.txt has for each part the fewest programs, first those of its section, that enter all of its functions which any
program enters; it is true while they do."""
import collections
import glob
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

LINES_MIN, BRANCHES_MIN = 95, 90
MAP, REASONS = "tests/map.txt", "tests/uncovered.txt"
PARTS = "build/parts/"           # what was compiled: two lines, which include the parts above, then the part
FIRST = 2
LIBRARIES = "libtl_strategy.so", "libtl_vk_backend.so"
Branch = collections.namedtuple("Branch", "line taken")


def tool(name):
    for candidate in (name, name + "-14"):
        if subprocess.run(["which", candidate], stdout=subprocess.DEVNULL).returncode == 0:
            return candidate
    sys.exit("coverage: no %s (Debian: llvm)" % name)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def merge(profiles, into):
    listed = into + ".list"
    with open(listed, "w") as f:
        f.write("".join(p + "\n" for p in profiles))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-f", listed, "-o", into], check=True)


def entered(profdata):
    """The functions that a program has entered."""
    names, name = set(), None
    for line in output(tool("llvm-profdata"), "show", "--all-functions", profdata).splitlines():
        if line.startswith("  ") and line.endswith(":") and not line.startswith("   "):
            name = line.strip()[:-1].rpartition(":")[2]
        elif line.strip().startswith("Function count:") and not line.endswith(" 0"):
            names.add(name)
    return names


def part_of_functions(directory):
    """name -> part, from the objects."""
    found = {}
    parts = [os.path.relpath(p, "src") for p in glob.glob("src/**/*.c", recursive=True)]
    objects = ["%s/parts/%s.o" % (directory, part[:-2]) for part in parts]
    for line in output("nm", "-A", "--defined-only", *filter(os.path.exists, objects)).splitlines():
        path, _, rest = line.partition(":")
        _, kind, name = rest.split()
        if kind == "T":
            found[name] = os.path.relpath(path, directory + "/parts")[:-2] + ".c"
    return found


def measure(directory, profdata):
    """part -> ({line: count}, [Branch]) with the lines of the part."""
    objects = [directory + "/parts/" + name for name in LIBRARIES if os.path.exists(directory + "/parts/" + name)]
    arguments = [objects[0]] + [x for o in objects[1:] for x in ("-object", o)]
    data = json.loads(output(tool("llvm-cov"), "export", "-instr-profile", profdata, *arguments))["data"][0]
    parts = {}
    for file in data["files"]:
        if PARTS in file["filename"] and file["filename"].endswith(".c"):
            parts[file["filename"].split(PARTS, 1)[1]] = line_counts(file["segments"]), []
    for function in data["functions"]:      # those of a file name conditions, too, that the compiler has decided
        for line, _, _, _, true, false, file, *_ in function["branches"]:
            part = function["filenames"][file].rpartition(PARTS)[2]
            if part in parts:
                parts[part][1].extend((Branch(line - FIRST, true > 0), Branch(line - FIRST, false > 0)))
    return parts


def line_counts(segments):
    """As llvm-cov counts lines: the largest count of what begins in a line, else of what goes through it."""
    counts, wrapped, i = {}, None, 0
    by_line = collections.defaultdict(list)
    for segment in segments:
        by_line[segment[0]].append(segment)
    if not segments:
        return counts
    for line in range(segments[0][0], segments[-1][0] + 1):
        begun = [s for s in by_line[line] if s[4] and s[3] and not s[5]]
        mapped = (wrapped is not None and wrapped[3]) or bool(begun)
        if any(s[4] and not s[3] for s in by_line[line][:1]):
            mapped = False
        if mapped:
            counts[line - FIRST] = max([s[2] for s in begun] + ([wrapped[2]] if wrapped and wrapped[3] else []))
        if by_line[line]:
            wrapped = by_line[line][-1]
    return counts


def read_reasons():
    texts, patterns = {}, []
    with open(REASONS) as f:
        for line in f:
            if " =~> " in line:
                pattern, _, reason = line.rstrip("\n").partition(" =~> ")
                patterns.append((re.compile(pattern), reason))
            elif " => " in line:
                text, _, reason = line.rstrip("\n").partition(" => ")
                texts[text] = reason
    return texts, patterns


def reason_of(reasons, text):
    texts, patterns = reasons
    if text in texts:
        return texts[text]
    return next((reason for pattern, reason in patterns if pattern.search(text)), "")


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def table(parts):
    """A row a part, and a sum for each header. Complaints about those below the limits."""
    sums = collections.defaultdict(lambda: [0] * 4)
    print("%-44s %15s %17s" % ("part", "lines", "branches"))
    for part in sorted(parts):
        lines, branches = parts[part]
        row = [sum(map(bool, lines.values())), len(lines), sum(b.taken for b in branches), len(branches)]
        print("%-44s %6d %7.2f %% %6d %7.2f %%" % (part, row[1], percent(*row[:2]), row[3], percent(*row[2:])))
        total = sums["tl_vk_backend.h" if part.startswith("vk/") else "tl_strategy.h"]
        total[:] = map(sum, zip(total, row))
    complaints = []
    for header, row in sorted(sums.items()):
        lines, branches = percent(*row[:2]), percent(*row[2:])
        print("%s: %d of %d lines run, %.2f %% (at least %d); %d of %d branches, %.2f %% (at least %d)" % (
            header, *row[:2], lines, LINES_MIN, *row[2:], branches, BRANCHES_MIN))
        if lines < LINES_MIN or branches < BRANCHES_MIN:
            complaints.append("%s: below the limits" % header)
    return complaints


def show(parts, branches_too):
    reasons = read_reasons()
    for part in sorted(parts):
        lines, branches = parts[part]
        with open("src/" + part) as f:
            texts = f.read().split("\n")
        missed = {line for line, count in lines.items() if not count}
        if branches_too:
            missed |= {b.line for b in branches if not b.taken and lines.get(b.line)}
        for line in sorted(missed):
            text = texts[line - 1].strip()
            reason = reason_of(reasons, text)
            print("src/%s:%d: %s%s" % (part, line, text, "    -- " + reason if reason else ""))


def fewest(programs, wanted, section):
    """Programs that enter all functions that are wanted: greedy, so nearly the fewest; first those of the part's section."""
    chosen, left = [], set(wanted)
    own = {p for p in programs if p.startswith("test_%s_" % section)}
    while left:
        best = max(sorted(programs), key=lambda p: (p in own and bool(programs[p] & left), len(programs[p] & left)))
        chosen.append(best)
        left -= programs[best]
    return chosen


def write_map(parts_functions, programs):
    with open(MAP, "w") as f:
        f.write("# The tests of each part: programs that enter all of its functions which any program enters. Made by make map.\n")
        for part in sorted(parts_functions):
            section = "vk" if part.startswith("vk/") else str(int(part[:2]))
            f.write("%s: %s\n" % (part, " ".join(fewest(programs, parts_functions[part], section))))


def check_map(parts_functions, programs):
    listed = {}
    with open(MAP) as f:
        for line in f:
            if not line.startswith("#"):
                part, _, names = line.partition(":")
                listed[part] = names.split()
    complaints = ["%s: %s is no part" % (MAP, part) for part in listed if part not in parts_functions]
    for part, functions in sorted(parts_functions.items()):
        missing = functions - set().union(*(programs.get(p, set()) for p in listed.get(part, [])))
        if missing:
            complaints.append("%s: %s: its tests do not enter %s, others do: make map" % (MAP, part, ", ".join(sorted(missing))))
    return complaints


def main():
    directory, *options = sys.argv[1:]
    folders = sorted(glob.glob(directory + "/*.profiles"))
    names = [os.path.basename(f)[:-len(".profiles")] for f in folders]

    def one(folder):
        into = folder[:-len(".profiles")] + ".profdata"
        merge(sorted(glob.glob(folder + "/*.profraw")), into)
        return entered(into)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        programs = dict(zip(names, pool.map(one, folders)))
    merge([directory + "/" + name + ".profdata" for name in names], directory + "/all.profdata")
    parts = measure(directory, directory + "/all.profdata")
    if "--lines" in options or "--branches" in options:
        return show(parts, "--branches" in options)
    place = part_of_functions(directory)
    parts_functions = collections.defaultdict(set)
    for functions in programs.values():
        for name in functions:
            if name in place:
                parts_functions[place[name]].add(name)
    programs = {p: {f for f in functions if f in place} for p, functions in programs.items()}
    if "--map" in options:
        return write_map(parts_functions, programs)
    complaints = table(parts) + check_map(parts_functions, programs)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.exit(main())
