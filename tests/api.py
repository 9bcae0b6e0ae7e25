#!/usr/bin/env python3
"""api.py [--check | --tables | --table | --ctypes | --list]: what both headers offer, as data.

Without an argument: writes build/api.json. clang reads the public parts and gives names, types and values; comments are taken
from the text of the parts by line, so they are what a reader sees there. Nothing in the file depends on where it is made, but that
tl_vk_backend.h needs Vulkan's headers.

    headers[] name  sections[] number title caption
        functions[]  name result parameters[] {name type} comment experimental part condition
        structs[]    name comment part fields[] {name type comment, fields[] of a union}; opaque: made and freed by functions
        enums[]      name comment part list values[] {name value word comment}
        types[]      name type comment part        function pointers, widths
        macros[]     name value comment part
    options[]   name form header effect            from OPTIONS in the top comments

A comment holds the lines above a declaration, or above the group of lines in which it stands, then what stands behind it.

--check     what must hold (complaints; exit status 1 if there is one):
                functions, structs and enums are those that the text of the parts declares
                a function, or its group, has a comment that begins with a verb (VERBS); values of enums and macros are explained,
                and fields: behind or above them, by their name in a comment of their struct ([node_count]) or by a type of ours
                what the preprocessor asks for is an option that has an effect, and the other way round
                tables of options in CONTRIBUTING.md (all) and README.md (any) say what OPTIONS in src/00_top.h says, or what
                it says up to the first semicolon or full stop
--tables    writes the tables between <!-- options --> and <!-- end of options --> anew, up to there with <!-- options, short -->;
            one that names some options keeps to these
--table     prints such a short table of all options
--ctypes    writes build/tl_strategy.py: the first header for Python's ctypes, over the library that TL_STRATEGY_LIBRARY names.
            Hooks and kernels are void pointers there: cast a CFUNCTYPE to it
--list      names each function with its section, its part and the first line of its comment
"""
import collections, glob, json, os, re, subprocess, sys

HEADERS = (('tl_strategy.h', 'src/'), ('tl_vk_backend.h', 'src/vk/'))
GUARDS = ('TL_STRATEGY_H', 'TL_VK_BACKEND_H')
PAGES = ('CONTRIBUTING.md', 'README.md')
VERBS = frozenset('''Add Allocate Ask Begin Borrow Check Choose Compile Convert Copy Count Cut Do Draw Drop Enqueue Estimate Evict
    Explain Fill Find Free Fuse Give Go Initialise List Look Make Map Measure Mix Move Name Open Order Parse Pick Place Plan Prepare
    Put Quantise Read Recommend Record Rehearse Replay Report Return Run Save Say Simulate Submit Sum Switch Take Tell Time Update
    Wait Write Yield'''.split())            # with which the comment of a function begins
MARKED = re.compile(r'(<!-- options(, short)?[^>]*-->\n).*?(<!-- end of options -->)', re.S)

def read(path):
    with open(path, encoding='utf-8') as f: return f.read()

def parts(folder):
    """The public parts of a header in their order."""
    return [folder + line.split()[0] for line in read(folder + 'ORDER').splitlines() if line.split()[0].endswith('.h')]

def has_vulkan():
    return subprocess.run(['clang', '-E', '-x', 'c', '-'], input='#include <vulkan/vulkan_core.h>\n', text=True,
                          capture_output=True).returncode == 0

# -- what the compiler sees --

class Place:
    """Where nodes of clang's JSON stand. It leaves out a file or a line that is that of the location before."""
    def __init__(self): self.file, self.line = None, None
    def walk(self, x):
        if isinstance(x, list):
            for y in x: self.walk(y)
        elif isinstance(x, dict):
            if 'offset' in x:
                self.file = x['file'] = x.get('file', self.file)
                self.line = x['line'] = x.get('line', self.line)
            for key, y in x.items():
                if key != 'includedFrom': self.walk(y)

def declarations(paths):
    """Declarations at file scope of the parts, as clang's JSON with all locations filled in."""
    source = ''.join('#include "%s"\n' % path for path in paths)
    text = subprocess.run(['clang', '-std=c99', '-I.', '-fsyntax-only', '-Xclang', '-ast-dump=json', '-Xclang',
                           '-ast-dump-filter=tl_', '-x', 'c', '-'], input=source, stdout=subprocess.PIPE, text=True, check=True).stdout
    found, at, decoder = [], 0, json.JSONDecoder()
    while text[at:at + 1] == '{':
        node, at = decoder.raw_decode(text, at)
        Place().walk(node)
        node['part'] = os.path.normpath(at_name(node)['file'] or '')
        if node['part'] in paths: found.append(node)
        while text[at:at + 1].isspace(): at += 1
    if at < len(text): sys.exit('api.py: clang wrote what is no JSON: ' + text[at:at + 80])
    return found

def at_name(node): return node['loc'].get('expansionLoc', node['loc'])
def line_of(node, end): return node['range'][end].get('expansionLoc', node['range'][end])['line']

# -- comments --

def without_marks(lines): return [re.sub(r'^ *// ?', '', line).rstrip() for line in lines]

class Part:
    """The lines of a part, from 1 on."""
    def __init__(self, path):
        self.lines = [''] + read(path).splitlines() + ['']
        self.conditions = self.read_conditions()

    def read_conditions(self):
        """For each line the conditions under which it is read, but for guards."""
        stack, result = [], []
        for line in self.lines:
            m = re.match(r'#(ifdef|ifndef|if|else|elif|endif)\b *([^/]*)', line)
            word, rest = (m.group(1), m.group(2).strip()) if m else ('', '')
            if word in ('ifdef', 'ifndef', 'if'):
                stack.append({'ifdef': 'defined(%s)', 'ifndef': '!defined(%s)', 'if': '%s'}[word] % rest)
            elif word == 'else': stack[-1] = '!(%s)' % stack[-1]
            elif word == 'elif': stack[-1] = rest
            elif word == 'endif': stack.pop()
            result.append(' && '.join(c for c in stack if not re.search('_H\\b|__cplusplus', c)))
        return result

    def is_comment(self, i): return re.match(r' *//', self.lines[i]) is not None

    def above(self, i, group):
        """The comment above line i, which has its indent; with group: above the lines of code that stand together with it."""
        indent = len(self.lines[i]) - len(self.lines[i].lstrip())
        while group and re.match(r'[^\s#/}]|  ', self.lines[i - 1]) and not self.lines[i - 1].startswith('typedef struct'): i -= 1
        first = i
        while re.match(' {%d}//' % indent, self.lines[first - 1]): first -= 1
        lines = without_marks(self.lines[first:i])
        if any(line.startswith('=====') for line in lines): return ''           # a banner
        if lines and re.match('-- .* --$', lines[0]): lines = []                  # a heading of several declarations
        return '\n'.join(lines).strip()

    def behind(self, i):
        """The comment behind the code of line i, which goes on below it in the same column or further right."""
        code = re.sub(r'"([^"\\]|\\.)*"', lambda m: '_' * len(m.group()), self.lines[i])
        column = code.find('//')
        if column < 0: return ''
        lines = [code and self.lines[i][column:]]
        while re.match(r' {%d,}//' % max(column - 2, 8), self.lines[i + 1]):
            i += 1
            lines.append(self.lines[i])
        return ' '.join(line.strip() for line in without_marks(lines))

def joined(*comments): return '\n'.join(c for c in comments if c)

# -- the data --

def fields_of(part, record):
    fields, inner = [], None
    for node in record.get('inner', []):
        if node['kind'] == 'RecordDecl': inner = node
        if node['kind'] != 'FieldDecl': continue
        first, last = line_of(node, 'begin'), line_of(node, 'end')
        field = {'name': node['name'], 'type': node['type']['qualType'],
                 'comment': joined(part.above(first, False), part.behind(last))}
        if inner and re.search('unnamed|anonymous', field['type']):
            field['type'] = inner['tagUsed']
            field['fields'] = fields_of(part, inner)
        fields.append(field)
    return fields

def enum_of(part, node):
    values, rows, value = [], '', -1
    for constant in node['inner']:
        value = int(constant['inner'][0]['value']) if 'inner' in constant else value + 1
        spelling = constant['loc'].get('spellingLoc')
        item = {'name': constant['name'], 'value': value, 'comment': 'how many there are' if constant['name'].endswith('_COUNT') else ''}
        if spelling:
            i = spelling['line']
            texts = re.findall(r'"((?:[^"\\]|\\.)*)"', part.lines[i])
            if texts: item.update(word=texts[0], comment=texts[-1])
            if not rows:
                while not part.lines[i].startswith('#define'): i -= 1
                rows = (part.lines[i].split()[1].split('(')[0], part.above(i, False))
        values.append(item)
    return {'name': node['name'], 'comment': joined(rows[1] if rows else '', part.above(line_of(node, 'begin'), True)),
            'list': rows[0] if rows else '', 'values': values}

def macros_of(path, part):
    found = []
    for i, line in enumerate(part.lines):
        m = re.match(r'#define (TL_(?!VERSION\b)\w+)(?!\w|\() +(.*?) *(//.*)?$', line)
        if not m or m.group(1) in GUARDS or m.group(1) in options_asked([path]) or m.group(1) == 'TL_EXPERIMENTAL': continue
        found.append({'name': m.group(1), 'value': m.group(2), 'comment': joined(part.above(i, False), part.behind(i)), 'part': path})
    return found

def header(name, folder, paths_before):
    paths = parts(folder)
    nodes = collections.defaultdict(list)
    for node in declarations(paths_before + paths): nodes[node['part']].append(node)
    records = {n['name'] for ns in nodes.values() for n in ns if n.get('completeDefinition')}
    sections, done = [], set()
    for path in paths:
        part = Part(path)
        banner = next((m for m in map(re.compile(r'// \[(\d+)\] ([A-Z]+) -- (.+)').match, part.lines) if m), None)
        if banner or not sections:
            number, title, caption = banner.groups() if banner else (0, 'TOP', 'options, version')
            sections.append({'number': int(number), 'title': title, 'caption': caption, 'functions': [], 'structs': [], 'enums': [],
                             'types': [], 'macros': []})
        section = sections[-1]
        for node in nodes[path]:
            kind, what, first, last = node['kind'], node['name'], line_of(node, 'begin'), line_of(node, 'end')
            item = {'name': what}
            if (kind, what) in done: continue
            if kind == 'FunctionDecl':
                text = '\n'.join(part.lines[first:last + 1])
                item['result'] = node['type']['qualType'].split('(')[0].strip()
                item['parameters'] = [{'name': p.get('name', ''), 'type': p['type']['qualType']}
                                      for p in node.get('inner', []) if p['kind'] == 'ParmVarDecl']
                item['comment'] = joined(part.above(first, True), part.behind(last))
                item['experimental'] = text.startswith('TL_EXPERIMENTAL')
                section['functions'].append(item)
            elif kind == 'RecordDecl' and node.get('completeDefinition'):
                item.update(comment=part.above(first, False), fields=fields_of(part, node))
                section['structs'].append(item)
            elif kind == 'RecordDecl' and what not in records:
                item.update(comment=joined(part.above(first, False), part.behind(last)), opaque=True, fields=[])
                section['structs'].append(item)
            elif kind == 'EnumDecl':
                item.update(enum_of(part, node))
                section['enums'].append(item)
            elif kind == 'TypedefDecl' and not re.match(r'(struct|enum) %s$' % what, node['type']['qualType']):
                item.update(type=node['type']['qualType'], comment=joined(part.above(first, False), part.behind(last)))
                section['types'].append(item)
            else: continue
            done.add((kind, what))
            item['part'] = path
            if part.conditions[first]: item['condition'] = part.conditions[first]
        section['macros'] += macros_of(path, part)
    return {'name': name, 'sections': sections}

def options(name, top):
    """OPTIONS of the top comment. One without an effect shares that of the one above it."""
    found = []
    for line in re.search(r'\n   OPTIONS .*?\n(.*?)\n\n', read(top), re.S).group(1).splitlines():
        m = re.match(r' {7}(\S+) *(.*)', line)
        if m: found.append({'name': m.group(1).split('(')[0], 'form': m.group(1), 'header': name, 'effect': m.group(2)})
        else: found[-1]['effect'] += ' ' + line.strip()
    for before, option in zip(found, found[1:]):
        if not option['effect']: option.update(effect=before['effect'], beside=before['name'])
    return found

def read_api():
    api = {'version': '.'.join(re.findall(r'#define TL_VERSION_(?:MAJOR|MINOR|PATCH) +(\d+)', read('src/00_top.h'))),
           'headers': [], 'options': []}
    before = []
    for name, folder in HEADERS:
        api['options'] += options(name, folder + '00_top.h')
        if 'vk' in folder and not has_vulkan():
            print('SKIPPED %s: no <vulkan/vulkan_core.h> (Debian: libvulkan-dev)' % name)
            if os.environ.get('STRICT', '0') == '1': sys.exit(1)
            continue
        api['headers'].append(header(name, folder, before))
        before += parts(folder)
    return api

def items(api, kind, name=None):
    return [x for h in api['headers'] if name in (None, h['name']) for s in h['sections'] for x in s[kind]]

# -- tables of options --

def cell(text): return re.sub(r'(?<![\w`])(TL\w*[A-Z_]\w*\*?|tl_\w+(?:\.\w+)?)(?![\w`])', r'`\1`', text.replace('|', '\\|'))

def short(effect): return re.split(r'; |\. ', effect)[0]

def table(api, names, is_short):
    rows = []
    for o in api['options']:
        if o['header'] != HEADERS[0][0] or (names and o['name'] not in names): continue
        if 'beside' in o and rows: rows[-1][0] += ' `%s`' % o['form']
        else: rows.append(['`%s`' % o['form'], cell(short(o['effect']) if is_short else o['effect'])])
    return '| macro | effect |\n|---|---|\n' + ''.join('| %s | %s |\n' % tuple(row) for row in rows)

def table_rows(page):
    """option -> effect, in the table of a page whose first column is `TL...`"""
    return {name: effect.strip() for names, effect in re.findall(r'^\| (`TL[^|]*) \|(.*)\|$', page, re.M)
            for name in re.findall(r'`(TL\w*)', names)}

def plain(text): return text.replace('`', '').replace('\\|', '|')

def write_tables(api):
    for path in PAGES:
        page = read(path)
        def written(m): return m.group(1) + table(api, table_rows(m.group()), m.group(2)) + m.group(3)
        new = MARKED.sub(written, page)
        if new == page: continue
        with open(path, 'w', encoding='utf-8') as f: f.write(new)
        print(path + ': options written')

# -- bindings --

def ctype(text, api, classes):
    """The type of ctypes for one of C."""
    text = re.sub(r'\bconst\b', '', text).strip()
    array = re.match(r'(.*?)\[(\d+)\](.*)$', text)
    if array: return '(%s * %s)' % (ctype(array.group(1) + array.group(3), api, classes), array.group(2))
    if '(*' in text: return 'c_void_p'
    if text.endswith('*'):
        to = text[:-1].strip()
        return 'POINTER(%s)' % to if to in classes else 'c_char_p' if to == 'char' else 'c_void_p'
    if text in classes: return text
    if text in {e['name'] for e in items(api, 'enums')}: return 'c_int'
    for x in items(api, 'types'):
        if x['name'] == text: return ctype(x['type'], api, classes)
    return 'None' if text == 'void' else 'c_' + re.sub('_t$', '', text) if text != 'size_t' else 'c_size_t'

def bindings(api):
    name = HEADERS[0][0]
    structs = items(api, 'structs', name)
    classes = {s['name'] for s in structs}
    lines = ['"""%s %s for ctypes, written by tests/api.py --ctypes."""' % (name, api['version']), 'import os', 'from ctypes import *', '',
             "library = CDLL(os.environ.get('TL_STRATEGY_LIBRARY', 'libtl_strategy.so'))", '']
    lines += ['%s = %s' % (v['name'], v['value']) for e in items(api, 'enums', name) for v in e['values']]
    lines += ['%s = %s' % (m['name'], m['value'].replace('UINT64_MAX', '2**64 - 1')) for m in items(api, 'macros', name)]
    lines += ['', *('class %s(Structure): pass' % s['name'] for s in structs), '']
    def fields(of, members):
        """Fields of a class, after the classes of unions and structs inside of it."""
        for x in members:
            if 'fields' not in x: continue
            inner = '%s_%s' % (of, x['name'])
            lines.append('class %s(%s): pass' % (inner, 'Union' if x['type'] == 'union' else 'Structure'))
            classes.add(inner)
            fields(inner, x['fields'])
        lines.append('%s._fields_ = [%s]' % (of, ', '.join("('%s', %s)" % (x['name'], '%s_%s' % (of, x['name']) if 'fields' in x else
                                                                         ctype(x['type'], api, classes)) for x in members)))
    for s in structs:
        if not s.get('opaque'): fields(s['name'], s['fields'])
    lines += ['', 'def function(name, result, *parameters):', '    f = getattr(library, name)',
              '    f.restype, f.argtypes = result, parameters', '    return f', '']
    for f in items(api, 'functions', name):
        kinds = [ctype(t, api, classes) for t in [f['result']] + [p['type'] for p in f['parameters']]]
        lines.append("%s = function('%s', %s)" % (f['name'], f['name'], ', '.join(kinds)))
    return '\n'.join(lines) + '\n'

# -- what must hold --

def options_asked(paths):
    """Names without TLI_ that the preprocessor asks for, less guards and what only tells a second include."""
    found = set()
    for path in paths:
        for line in re.findall(r'^ *# *(?:if|ifdef|ifndef|elif)\b(.*)', read(path), re.M):
            found.update(re.findall(r'\b(?:TL|VK_NO)(?:DEF\b|_\w+)', line.split('//')[0]))
    return {name for name in found if not re.search('_H$|_DONE$|^TL_EXPERIMENTAL$', name)}

def declared(folder, pattern):
    return {name for path in parts(folder) for name in re.findall(pattern, read(path), re.M)}

def every_field(fields): return [y for x in fields for y in [x] + every_field(x.get('fields', []))]

def check(api):
    bad = []
    def differ(what, a, b, in_a, in_b):
        bad.extend('%s: %s: %s' % (what, in_a, name) for name in sorted(a - b))
        bad.extend('%s: %s: %s' % (what, in_b, name) for name in sorted(b - a))
    for h, (name, folder) in zip(api['headers'], HEADERS):
        for kind, pattern in (('functions', r'^(?:TLDEF|TL_EXPERIMENTAL)\b[^;(]*?\b(tl_\w+)\('),
                              ('structs', r'^typedef struct (\w+)'), ('enums', r'^typedef enum (\w+)'),
                              ('macros', r'^#define (TL_(?!EXPERIMENTAL|VERSION\b)\w+)(?!\w|\() +\S')):
            text = declared(folder, pattern)
            if kind == 'macros': text -= options_asked(parts(folder)) | {'TLDEF'}
            differ(name + ': ' + kind, {x['name'] for x in items(api, kind, name)}, text, 'not in the text of the parts', 'clang does not see')
    for f in items(api, 'functions'):
        word = re.match(r'\w*', f['comment']).group()
        if not f['comment']: bad.append('%s: %s: no comment' % (f['part'], f['name']))
        elif word not in VERBS: bad.append('%s: %s: no verb first: %s' % (f['part'], f['name'], f['comment'].split('\n')[0]))
    types = {x['name'] for kind in ('structs', 'enums', 'types') for x in items(api, kind)}
    for s in items(api, 'structs'):
        for x in every_field(s['fields']):
            others = s['comment'] + ' '.join(y['comment'] for y in every_field(s['fields']))
            if not (x['comment'] or 'fields' in x or x['name'].endswith('user') or re.search(r'\b%s\b' % x['name'], others) or
                    re.sub(r'\bconst\b|[ *]', '', x['type']) in types):
                bad.append('%s: %s.%s: no comment' % (s['part'], s['name'], x['name']))
    bad += ['%s: %s: no comment' % (e['part'], v['name']) for e in items(api, 'enums') for v in e['values'] if not v['comment']]
    bad += ['%s: %s: no comment' % (m['part'], m['name']) for m in items(api, 'macros') if not m['comment']]
    for name, folder in HEADERS:
        known = {o['name'] for o in api['options'] if o['header'] == name}
        asked = options_asked([folder + line.split()[0] for line in read(folder + 'ORDER').splitlines()])
        if name != HEADERS[0][0]: asked -= {o['name'] for o in api['options'] if o['header'] != name}
        differ(name + ': options', known, asked, 'the preprocessor does not ask for', 'not in OPTIONS of %s00_top.h' % folder)
        bad += ['%s: %s: no effect' % (name, o['name']) for o in api['options'] if not o['effect']]
    effects = {o['name']: o['effect'] for o in api['options']}
    for path in PAGES:
        rows = table_rows(read(path))
        if path == PAGES[0]:
            differ(path, set(rows), {o['name'] for o in api['options'] if o['header'] == HEADERS[0][0]}, 'no option', 'not in the table')
        for name, effect in rows.items():
            says = effects.get(name, '')
            if plain(effect) not in (says, short(says)):
                bad.append('%s: %s: "%s", and OPTIONS of src/00_top.h says "%s" (tests/api.py --tables)' % (path, name, plain(effect), says))
    return bad

def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)) + '/..')
    api = read_api()
    if '--tables' in sys.argv: return write_tables(api)
    if '--table' in sys.argv: return print(table(api, None, True), end='')
    if '--ctypes' in sys.argv:
        os.makedirs('build', exist_ok=True)
        with open('build/tl_strategy.py', 'w', encoding='utf-8') as f: f.write(bindings(api))
        return 0
    if '--list' in sys.argv:
        for h in api['headers']:
            for s in h['sections']:
                for f in s['functions']: print('[%d] %-36s %-28s %s' % (s['number'], f['name'], f['part'], f['comment'].split('\n')[0]))
        return 0
    bad = check(api) if '--check' in sys.argv else []
    for line in bad: print(line)
    os.makedirs('build', exist_ok=True)
    with open('build/api.json', 'w', encoding='utf-8') as f:
        json.dump(api, f, indent=1, ensure_ascii=False)
        f.write('\n')
    for h in api['headers']:
        counts = [(kind, len(items(api, kind, h['name']))) for kind in ('functions', 'structs', 'enums', 'types', 'macros')]
        print('%s: %s' % (h['name'], ', '.join('%d %s' % (n, kind) for kind, n in counts)))
    return len(bad) > 0

if __name__ == '__main__': sys.exit(main())
