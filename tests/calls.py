#!/usr/bin/env python3
"""Who calls whom, from the compiler's own call graph: what a part may use, and what may recurse.

    tests/calls.py               check both headers, print the matrices of calls
    tests/calls.py --self-test   check made-up parts, each of which breaks one rule

clang compiles the joined parts to LLVM IR with debug information, which names the part and the line of every function and
table. A call counts, and so does any other mention of a function, in code or in a constant table. Fails on
  - a mention, in a part, of what a part later in ORDER defines;
  - recursion: a cycle of functions, or of sub-headings of one section (`// -- name --`);
  - a circle of folders: each uses the other, directly or through others;
  - a function of more than 60 lines, from its signature to its closing brace.
tests/recursion.txt lists what is allowed of the first two, with a reason each; an entry of it that nothing needs fails, too.
A second compilation sets every option that a header asks for (TL_NO_*): code that is there only under options is held to
the same rules."""
import collections
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 60
ALLOWED = "tests/recursion.txt"
LINK, UP = " <-> ", " -> "          # between the members of a cycle; from a user to what it uses of a later part
CLANG = os.environ.get("CLANG", "clang")

Place = collections.namedtuple("Place", "part line")


class Parts:
    """The parts of one header: their ranks in ORDER, their lines, and the sub-heading that holds at each line."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "ORDER")) as f:
            self.names = [line.split()[0] for line in f if line.strip()]
        self.rank = {folder + "/" + name: i for i, name in enumerate(self.names)}
        self.lines = {}
        self.headings = {}
        for part in self.rank:
            with open(part, encoding="ascii") as f:
                self.lines[part] = f.read().split("\n")
            heading, headings = "head", []
            for line in self.lines[part]:
                found = re.match(r"// -- (.+?) --$", line)
                heading = found.group(1) if found else heading
                headings.append(heading)
            self.headings[part] = headings

    def join(self, path):
        """As `make header NUMBERED=1` does, in another place: the compiler names lines of the parts."""
        with open(path, "w") as f:
            for part, lines in self.lines.items():
                f.write('#line 1 "%s"\n' % part + "\n".join(lines))

    def section(self, part):
        found = re.match(r"(\d+)_", part[len(self.folder) + 1:])
        return int(found.group(1)) if found else 5      # the words of shaders, which stand in a folder of their own

    def room(self, part):
        return os.path.relpath(os.path.dirname(part), self.folder)

    def heading(self, place):
        name = os.path.relpath(place.part, "src" if place.part.startswith("src/") else self.folder)
        return "%s: %s" % (name, self.headings[place.part][place.line - 1])

    def length(self, place):
        """Lines of the function that begins here. Bodies close in the first column, unless they fit on their line."""
        lines = self.lines[place.part]
        if lines[place.line - 1].endswith("}"):
            return 1
        for i in range(place.line, len(lines)):
            if lines[i].startswith("}"):
                return i + 2 - place.line
        return 1


class Graph:
    """Functions and tables of one compilation, where they stand, and what each of them mentions."""

    def __init__(self, ir, parts):
        self.place, self.uses, self.functions, self.calls = {}, collections.defaultdict(set), set(), set()
        files, where, variables = debug_places(ir)
        mentions, attached, function = {}, {}, None
        for line in ir:
            if line.startswith("define "):
                function = global_names(line)[0]
                attached[function] = attachment(line)
                mentions[function] = set()
                self.functions.add(function)
            elif line == "}":
                function = None
            elif line.startswith("@"):
                names = global_names(line)
                mentions[names[0]] = set(names[1:])
                attached[names[0]] = variables.get(attachment(line))
            elif function and "@" in line:
                code = line.split(", !dbg", 1)[0]
                mentions[function].update(global_names(code))
                called = re.search(r"\bcall [^@]*@([\w.$]+)\(", code)
                if called:
                    self.calls.add((function, called.group(1)))
        for name, node in attached.items():
            file, line = where.get(node, (None, 0))
            if files.get(file) in parts.rank:
                self.place[name] = Place(files[file], line)
        for name in self.place:
            self.collect(name, name, mentions, set())
        self.functions &= set(self.place)

    def collect(self, user, name, mentions, seen):
        """What has no place of its own, as the initial values of a local table, counts for those that mention it."""
        for other in mentions.get(name, ()):
            if other in self.place:
                self.uses[user].add(other)
            elif other in mentions and other not in seen:
                seen.add(other)
                self.collect(user, other, mentions, seen)


def global_names(line):
    line = re.sub(r'\bc"[^"]*"', "", line)          # the bytes of strings
    return re.findall(r"@([\w.$]+)", line)


def attachment(line):
    found = re.findall(r"!dbg !(\d+)", line)
    return found[-1] if found else None


def debug_places(ir):
    files, where, variables = {}, {}, {}
    for line in ir:
        if not line.startswith("!"):
            continue
        found = re.match(r'!(\d+) = !DIFile\(filename: "([^"]*)"(?:, directory: "([^"]*)")?', line)
        if found:       # the compiler gives a path from a folder that it shares with the present one: from the root
            name = os.path.normpath(os.path.join(found.group(3) or "", found.group(2)))
            files[found.group(1)] = os.path.relpath(name) if name.startswith(os.getcwd() + os.sep) else name
            continue
        found = re.match(r"!(\d+) = distinct !DI(?:Subprogram|GlobalVariable)\(.*?\bfile: !(\d+), line: (\d+)", line)
        if found:
            where[found.group(1)] = (found.group(2), int(found.group(3)))
            continue
        found = re.match(r"!(\d+) = !DIGlobalVariableExpression\(var: !(\d+)", line)
        if found:
            variables[found.group(1)] = found.group(2)
    return files, where, variables


def compile_graph(parts, header, build, macros):
    source, ir = os.path.join(build, "calls.c"), os.path.join(build, "calls.ll")
    with open(source, "w") as f:
        f.write("".join("#define %s\n" % m for m in macros) + '#include "%s"\n' % header)
    subprocess.run([CLANG, "-std=c99", "-O0", "-g", "-S", "-emit-llvm", "-femit-all-decls", "-w", "-I" + build, "-I.",
                    "-o", ir, source], check=True)
    with open(ir) as f:
        return Graph(f.read().split("\n"), parts)


def cycles(nodes, uses):
    """Tarjan, SIAM J. Comput. 1(2), 1972, without recursion: components of two nodes or more, and nodes that use themselves."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, None)]
        while work:
            node, todo = work.pop()
            if todo is None:
                index[node] = low[node] = len(index)
                stack.append(node)
                on.add(node)
                todo = iter(sorted(uses[node] & nodes))
            for other in todo:
                if other not in index:
                    work += [(node, todo), (other, None)]
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component, stack = stack[at:], stack[:at]
                    on -= set(component)
                    if len(component) > 1 or node in uses[node]:
                        found.append(sorted(component))
    return found


def upward(graph, parts):
    for user in sorted(graph.place):
        for used in sorted(graph.uses[user]):
            a, b = graph.place[user], graph.place[used]
            if parts.rank[b.part] > parts.rank[a.part]:
                yield user + UP + used, "%s:%d: %s uses %s of a later part, %s:%d" % (*a, user, used, *b)


def recursion(graph, parts):
    """Cycles of functions and the tables that name them, then of the sub-headings of each section."""
    message = "%s: recursion that " + ALLOWED + " does not list:\n    %s"
    for cycle in cycles(set(graph.place), graph.uses):
        yield LINK.join(cycle), message % ("%s:%d" % graph.place[cycle[0]], LINK.join(cycle))
    uses, why = collections.defaultdict(set), {}
    for user in graph.place:
        for used in graph.uses[user]:
            a, b = graph.place[user], graph.place[used]
            from_, to = parts.heading(a), parts.heading(b)
            if from_ != to and parts.section(a.part) == parts.section(b.part):
                uses[from_].add(to)
                why.setdefault((from_, to), []).append("%s -> %s" % (user, used))
    for cycle in cycles(set(uses), uses):
        edges = ["%s uses %s: %s" % (*edge, ", ".join(sorted(why[edge])[:4])) for edge in sorted(why)
                 if edge[0] in cycle and edge[1] in cycle]
        yield LINK.join(cycle), message % ("\n".join(edges) + "\nsub-headings", LINK.join(cycle))


def arrows(graph, parts):
    """The folders that each folder uses, and one pair of functions for each of these arrows."""
    uses, why = collections.defaultdict(set), {}
    for user in sorted(graph.place):
        for used in sorted(graph.uses[user]):
            from_, to = (parts.room(graph.place[name].part) for name in (user, used))
            if from_ != to:
                uses[from_].add(to)
                why.setdefault((from_, to), "%s -> %s" % (user, used))
    return uses, why


def circles(graph, parts):
    uses, why = arrows(graph, parts)
    for circle in cycles(set(uses), uses):
        edges = ["    %s uses %s: %s" % (*edge, why[edge]) for edge in sorted(why) if edge[0] in circle and edge[1] in circle]
        yield "folders that use each other: %s\n%s" % (LINK.join(circle), "\n".join(edges))


def long_functions(graph, parts):
    for name in sorted(graph.functions):
        place = graph.place[name]
        length = parts.length(place)
        if length > LIMIT:
            yield "%s:%d: %s has %d lines, %d are allowed" % (place.part, place.line, name, length, LIMIT)


def read_allowed(path):
    """What is allowed, with the lines that say so: `names => reason`."""
    allowed = {}
    if not os.path.exists(path):
        return allowed
    with open(path) as f:
        for number, line in enumerate(f, 1):
            names, arrow, reason = line.rstrip("\n").partition(" => ")
            if number == 1 or not line.strip():
                continue
            if not arrow or not reason.strip():
                raise SystemExit("%s:%d: no ` => reason`" % (path, number))
            allowed[LINK.join(sorted(names.split(LINK)))] = "%s:%d" % (path, number)
    return allowed


def print_matrix(graph, parts):
    """Calls and mentions between sections, each pair of functions once: callers down, callees across."""
    count = collections.Counter()
    for user in graph.place:
        for used in graph.uses[user]:
            count[tuple(parts.section(graph.place[n].part) for n in (user, used))] += 1
    functions = collections.Counter(parts.section(graph.place[n].part) for n in graph.functions)
    sections = sorted(functions)
    print("%9s" % parts.folder + "".join("%6s" % ("[%d]" % s) for s in sections) + "   functions")
    for a in sections:
        print("%9s" % ("[%d]" % a) + "".join("%6s" % (count[a, b] or ".") for b in sections) + "%12d" % functions[a])
    print("%d functions in %d parts, %d calls and mentions, %d of them calls" % (
        len(graph.functions), len({p.part for p in graph.place.values()}), sum(count.values()),
        sum(1 for a, b in graph.calls if a in graph.place and b in graph.place)))


def print_rooms(graph, parts):
    """How the parts lie: folders, which of them use which, and the largest of everything."""
    uses, _ = arrows(graph, parts)
    count = collections.Counter(parts.room(part) for part in parts.rank)
    lines = {part: len(lines) - 1 for part, lines in parts.lines.items()}
    folder, part = max(count, key=count.get), max(lines, key=lines.get)
    upwards = sum(1 for _ in upward(graph, parts))
    sections = {(parts.section(graph.place[a].part), parts.section(graph.place[b].part)) for a in graph.place for b in graph.uses[a]}
    print("%d sections, %d arrows between them; %d folders, %d arrows, %d mentions upwards, %d circles" % (
        len({s for pair in sections for s in pair}), sum(a != b for a, b in sections), len(count),
        sum(map(len, uses.values())), upwards, sum(1 for _ in circles(graph, parts))))
    print("largest folder %s, %d parts; largest part %s, %d lines" % (folder, count[folder], part, lines[part]))


def check(folder, header, build, macros, allowed, met):
    """Complaints about one header. The matrix is that of the first compilation, with no option set."""
    parts = Parts(folder)
    parts.join(os.path.join(build, header))
    text = "\n".join("\n".join(lines) for lines in parts.lines.values())
    options = sorted(set(re.findall(r"^ *# *(?:if|elif).*?\b(TL_NO_[A-Z_]+)\b", text, re.M)))
    complaints = []
    for set_ in ([], options):
        graph = compile_graph(parts, header, build, macros + set_)
        if not set_:
            print_matrix(graph, parts)
            print_rooms(graph, parts)
        for name, complaint in [*upward(graph, parts), *recursion(graph, parts)]:
            met.add(name)
            if name not in allowed:
                complaints.append(complaint)
        complaints += [*circles(graph, parts), *long_functions(graph, parts)]
        if not options:
            break
    return list(dict.fromkeys(complaints))


def main():
    build = "build/check/calls"
    os.makedirs(build, exist_ok=True)
    allowed, met = read_allowed(ALLOWED), set()
    complaints = check("src", "tl_strategy.h", build, ["TL_STRATEGY_IMPLEMENTATION"], allowed, met)
    vulkan = subprocess.run([CLANG, "-fsyntax-only", "-x", "c", "-"], input="#include <vulkan/vulkan_core.h>\n", text=True,
                            stderr=subprocess.DEVNULL).returncode == 0
    if vulkan:
        complaints += check("src/vk", "tl_vk_backend.h", build, ["TL_VK_BACKEND_IMPLEMENTATION"], allowed, met)
    for name, line in allowed.items():
        if name not in met and (vulkan or "vk" not in name):
            complaints.append("%s: nothing needs this entry:\n    %s" % (line, name))
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print("%d complaints" % len(complaints) if complaints else "%d cycles and %d upward mentions, all listed in %s" % (
        sum(LINK in name or UP not in name for name in met), sum(UP in name for name in met), ALLOWED))
    if not vulkan:
        print("SKIPPED calls of tl_vk_backend.h: no <vulkan/vulkan_core.h> (Debian: libvulkan-dev)")
        return 1 if complaints or os.environ.get("STRICT", "0") == "1" else 0
    return 1 if complaints else 0


# -- the test of the test --

SPLIT = "// the other folder\n"
LOW = """static int low(int x);
static int low(int x) { return x + 1; }
static int (*const low_table[])(int) = { low };
"""
HIGH = """static int high(int x);
static int high(int x) { return low_table[0](low(x)); }
int entry(int x) { return high(x); }
"""


def self_test():
    """Each made-up pair of parts, what its complaint must hold, and which cycles are allowed; None: no complaint."""
    long_body = "    x += 1;\n"
    cases = [
        ("parts that keep every rule", LOW, HIGH, {}, None),
        ("an upward call", "static int high(int x);\n" + LOW.replace("x + 1", "x ? high(x - 1) : 0"), HIGH.replace("low_table[0](low(x))", "x"), {},
         "1_low.c:3: low uses high of a later part, FOLDER/2_high.c:2"),
        ("the same, listed", "static int high(int x);\n" + LOW.replace("x + 1", "x ? high(x - 1) : 0"),
         HIGH.replace("low_table[0](low(x))", "x"), {"low -> high": ""}, None),
        ("an upward mention", "static int high(int x);\n" + LOW + "void *give(void);\nvoid *give(void) { return (void *)high; }\n",
         HIGH, {}, "1_low.c:6: give uses high of a later part, FOLDER/2_high.c:2"),
        ("an upward mention in a table", "static int high(int x);\n" + LOW.replace("{ low }", "{ low, high }"), HIGH, {},
         "1_low.c:4: low_table uses high of a later part, FOLDER/2_high.c:2"),
        ("an upward mention in a table of a function", "static int high(int x);\n" + LOW +
         "int pick(int i);\nint pick(int i) {\n    int (*const table[2])(int) = { low, high };\n    return table[i](i);\n}\n",
         HIGH, {}, "1_low.c:6: pick uses high of a later part, FOLDER/2_high.c:2"),
        ("a function that calls itself", LOW.replace("x + 1", "x ? low(x - 1) : 0"), HIGH, {}, "does not list:\n    low\n"),
        ("functions that call each other", LOW, HIGH.replace("low(x)", "x ? entry(x - 1) : low(x)")
         .replace("static int high(int x);", "static int high(int x);\nint entry(int x);"), {},
         "does not list:\n    entry <-> high\n"),
        ("the same, listed", LOW, HIGH.replace("low(x)", "x ? entry(x - 1) : low(x)")
         .replace("static int high(int x);", "static int high(int x);\nint entry(int x);"), {"entry <-> high": ""}, None),
        ("a part of it listed", LOW.replace("x + 1", "x ? low(x - 1) : 0"), HIGH, {"high": ""}, "does not list:\n    low\n"),
        ("recursion through a table", "static int low(int x);\nstatic int (*const low_table[])(int) = { low };\n"
         "static int low(int x) { return x ? low_table[0](x - 1) : 0; }\n", HIGH, {}, "does not list:\n    low <-> low_table\n"),
        ("sub-headings that use each other", LOW, "static int middle(int x);\n// -- one --\n" + HIGH.replace("return high(x)", "return "
         "high(x) + middle(x)") + "// -- two --\nstatic int middle(int x) { return high(x); }\n", {},
         "does not list:\n    2_high.c: one <-> 2_high.c: two\n"),
        ("folders in one direction", LOW + SPLIT + "int middle(int x);\nint middle(int x) { return low(x); }\n",
         "int upper(int x);\nint upper(int x) { return low(x); }\n" + SPLIT + HIGH, {}, None),
        ("folders in a circle", LOW + SPLIT + "int middle(int x);\nint middle(int x) { return low(x); }\n",
         "int upper(int x);\nint upper(int x) { return middle(x); }\n" + SPLIT + HIGH, {},
         "folders that use each other: a <-> b\n    a uses b: upper -> middle\n    b uses a: "),
        ("a function of 60 lines", LOW, HIGH + "int tall(int x);\nint tall(int x) {\n" + long_body * 57 + "    return x;\n}\n", {}, None),
        ("a function of 61 lines", LOW, HIGH + "int tall(int x);\nint tall(int x) {\n" + long_body * 58 + "    return x;\n}\n", {},
         "2_high.c:5: tall has 61 lines"),
        ("an upward call under an option", "static int high(int x);\n" + LOW.replace("return x + 1;", "\n#ifdef TL_NO_THIS\nreturn "
         "high(x);\n#else\nreturn x;\n#endif\n"), HIGH.replace("low_table[0](low(x))", "x"), {}, "low uses high of a later part"),
    ]
    failed = 0
    for what, low, high, allowed, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            parts = ("1_low.c", low), ("2_high.c", high)
            if what.startswith("folders"):      # the upper half of each part lies in one folder, the lower in another
                parts = [("%s/%s" % (half, name), text[slice(*lines)]) for name, text in parts
                         for half, lines in (("a", (0, text.index(SPLIT))), ("b", (text.index(SPLIT) + len(SPLIT), None)))]
            for name, text in (("ORDER", "".join(name + "  what it decides\n" for name, _ in parts)), *parts):
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as f:
                    f.write(text)
            with open(os.devnull, "w") as null:
                out, sys.stdout = sys.stdout, null
                try:
                    complaints = check(folder, "made_up.h", folder, [], allowed, set())
                finally:
                    sys.stdout = out
            text = "".join(c + "\n" for c in complaints)
            right = not complaints if expected is None else expected.replace("FOLDER", folder) in text
            if not right:
                failed += 1
                print("self-test: %s: expected %s, got:\n%s" % (what, expected or "no complaint", text), file=sys.stderr)
    print("self-test: %d of %d made-up headers judged right" % (len(cases) - failed, len(cases)))
    return 1 if failed else 0


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else main())
