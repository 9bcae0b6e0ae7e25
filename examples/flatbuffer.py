"""A reader of flatbuffers that trusts nothing, and as much of a writer as a .tflite needs. Plain Python 3.

A flatbuffer is tables, vectors and texts that refer to each other by offsets, forwards alone:

    root offset, file identifier
    table      offset back to its vtable, then fields;  vtable: its bytes, those of the table, an offset for each field
    vector     count, elements;  text: count, bytes, a 0

Every offset and count is checked before it is used; what is wrong raises Damaged.
"""
import struct


class Damaged(Exception):
    """One sentence."""


class Table:
    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - read(data, '<i', at)
        self.vtable_bytes, self.bytes = read(data, '<H', self.vtable), read(data, '<H', self.vtable + 2)
        if self.vtable_bytes < 4 or self.vtable_bytes % 2 or self.bytes < 4: raise Damaged('a table has no fields')
        check(data, self.vtable, self.vtable_bytes)
        check(data, at, self.bytes)

    def find(self, field):
        """Where a field stands; 0 = it is left out."""
        place = 4 + 2 * field
        offset = read(self.data, '<H', self.vtable + place) if place + 2 <= self.vtable_bytes else 0
        if offset and not 4 <= offset < self.bytes: raise Damaged('a field lies outside of its table')
        return self.at + offset if offset else 0

    def field_count(self): return (self.vtable_bytes - 4) // 2

    def number(self, field, form, default=0):
        at = self.find(field)
        return read(self.data, '<' + form, at) if at else default

    def follow(self, field):
        """Where what a field refers to stands; 0 = it is left out."""
        at = self.find(field)
        return at + read(self.data, '<I', at) if at else 0

    def table(self, field):
        at = self.follow(field)
        return Table(self.data, at) if at else None

    def numbers(self, field, form):
        """A vector of numbers; None where it is left out."""
        at = self.follow(field)
        if not at: return None
        count, size = read(self.data, '<I', at), struct.calcsize('<' + form)
        check(self.data, at + 4, count * size)
        return list(struct.unpack_from('<%d%s' % (count, form), self.data, at + 4))

    def tables(self, field):
        """A vector of tables, empty where it is left out."""
        at = self.follow(field)
        return [Table(self.data, at + 4 + 4 * k + offset) for k, offset in enumerate(self.numbers(field, 'I') or [])]

    def raw(self, field):
        """The bytes of a vector, empty where it is left out."""
        at = self.follow(field)
        if not at: return b''
        count = read(self.data, '<I', at)
        check(self.data, at + 4, count)
        return self.data[at + 4:at + 4 + count]

    def text(self, field): return self.raw(field).decode('utf-8', 'replace')


def check(data, at, size):
    if at < 0 or size < 0 or at + size > len(data): raise Damaged('an offset or a count leads outside of the file')


def read(data, form, at):
    check(data, at, struct.calcsize(form))
    return struct.unpack_from(form, data, at)[0]


def read_root(data, identifier):
    if data[4:8] != identifier: raise Damaged('it does not begin as a file of %s does' % identifier.decode())
    return Table(data, read(data, '<I', 0))


class Writer:
    """Bytes of a flatbuffer, from its beginning on. What a field refers to is written behind it: `refer` sets it."""

    def __init__(self, identifier):
        self.data = bytearray(4) + identifier

    def align(self, size): self.data += bytes(-len(self.data) % size)

    def table(self, numbers, references=()):
        """A table of {field: (form, number)} and of fields that refer; where it stands, and {field: where that does}."""
        fields = dict(numbers)
        fields.update((field, ('I', 0)) for field in references)
        vtable = [0] * (max(fields) + 1 if fields else 0)
        offset, places = 4, {}
        for field, (form, _) in sorted(fields.items(), key=lambda f: -struct.calcsize('<' + f[1][0])):
            size = struct.calcsize('<' + form)
            offset += -(offset + 4) % size if size == 8 else -offset % size     # the table stands at 4 behind 8
            vtable[field] = places[field] = offset
            offset += size
        self.align(8)
        head = struct.pack('<%dH' % (2 + len(vtable)), 4 + 2 * len(vtable), offset, *vtable)
        self.data += bytes((4 - len(head)) % 8) + head
        at = len(self.data)
        self.data += struct.pack('<i', len(head)) + bytes(offset - 4)
        for field, (form, number) in fields.items(): struct.pack_into('<' + form, self.data, at + places[field], number)
        return at, {field: at + places[field] for field in references}

    def vector(self, form, numbers, alignment=4):
        """A vector of numbers; its elements stand at a multiple of alignment. Where it stands."""
        self.data += bytes((-len(self.data) - 4) % max(alignment, 4))
        at = len(self.data)
        self.data += struct.pack('<I%d%s' % (len(numbers), form), len(numbers), *numbers)
        return at

    def raw(self, data, alignment=16):
        at = self.vector('B', b'', alignment)
        struct.pack_into('<I', self.data, at, len(data))
        self.data += data
        return at

    def text(self, text):
        at = self.raw(text.encode(), 4)
        self.data += b'\0'
        return at

    def references(self, count):
        """A vector that refers to so many tables: where it stands, and where each entry does."""
        at = self.vector('I', [0] * count)
        return at, [at + 4 + 4 * k for k in range(count)]

    def refer(self, place, at): struct.pack_into('<I', self.data, place, at - place)
    def set_root(self, at): self.refer(0, at)
