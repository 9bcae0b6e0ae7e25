"""Damage to files: a cut, bytes, words, a hole, bits of what stands at the beginning."""
import struct


def damage_bytes(random, data):
    data, how = bytearray(data), random.randrange(5)
    if how == 0: del data[random.randrange(len(data)):]
    if how == 1:
        for _ in range(random.randrange(1, 20)): data[random.randrange(len(data))] = random.randrange(256)
    if how == 2:
        for _ in range(random.randrange(1, 4)):
            number = random.choice([0, 1, 2**31, 2**32 - 1, random.randrange(2**32), random.randrange(64)])
            struct.pack_into('<I', data, random.randrange(len(data) // 4) * 4, number)
    if how == 3:
        at = random.randrange(len(data))
        del data[at:at + random.randrange(1, 64)]
    if how == 4:
        for _ in range(random.randrange(1, 6)): data[random.randrange(min(6000, len(data)))] ^= 1 << random.randrange(8)
    return bytes(data)
