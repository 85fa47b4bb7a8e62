"""FarmHash `Fingerprint32`: the number that says which bucket an owner is in.

The algorithm is the `mk` 32-bit variant of Google's FarmHash, which promises that a fingerprint never changes; `_mur`
and `_fmix` keep the names that it took from MurmurHash3. Why it is written in Python: docs/decisions/0001.

Sums may grow past 32 bits; what is shifted to the right must be masked first, and a product may be masked late.
"""

from __future__ import annotations

from struct import Struct

_C1 = 0xCC9E2D51
_C2 = 0x1B873593
_N = 0xE6546B64
_MASK = 0xFFFFFFFF

_word_at = Struct("<I").unpack_from
_five_words_at = Struct("<5I").unpack_from


def fingerprint32(data: bytes) -> int:
    """Return FarmHash's Fingerprint32 of `data`, an unsigned 32-bit number: the same on every machine, for ever."""
    if len(data) <= 4:
        return _up_to_4(data)
    if len(data) <= 12:
        return _up_to_12(data)
    if len(data) <= 24:
        return _up_to_24(data)
    return _finish(*_rounds(data, *_start(data)))


def _up_to_4(data: bytes) -> int:
    b, c = 0, 9
    for byte in data:
        signed = byte - 256 if byte >= 0x80 else byte  # the original reads chars, and x86 has signed ones
        b = (b * _C1 + signed) & _MASK
        c ^= b
    return _fmix(_mur(b, _mur(len(data), c)))


def _up_to_12(data: bytes) -> int:
    length = len(data)
    a = length + _fetch(data, 0)
    b = length * 5 + _fetch(data, length - 4)
    c = 9 + _fetch(data, (length >> 1) & 4)
    return _fmix(_mur(c, _mur(b, _mur(a, length * 5))))


def _up_to_24(data: bytes) -> int:
    length, half = len(data), len(data) >> 1
    last, last_but_one, middle = _fetch(data, length - 4), _fetch(data, length - 8), _fetch(data, half)
    a = _rotate(_fetch(data, half - 4), 12) + last
    h = _mur(last_but_one, (middle * _C1 + length) & _MASK) + a
    a = _rotate(a & _MASK, 3) + last_but_one
    h = _mur(_fetch(data, 0), h & _MASK) + a
    a = _rotate((a + last) & _MASK, 12) + middle
    h = _mur(_fetch(data, 4), h & _MASK) + a
    return _fmix(h & _MASK)


def _start(data: bytes) -> tuple[int, int, int]:
    length = len(data)
    last_20 = _five_words_at(data, length - 20)
    a4, a2, a3, a1, a0 = (_rotate(word * _C1 & _MASK, 17) * _C2 & _MASK for word in last_20)
    h = _stir(_stir(length ^ a0) ^ a2)
    g = _stir(_stir((length * _C1 & _MASK) ^ a1) ^ a3)
    f = _rotate((length * _C1 + a4) & _MASK, 19) + 113
    return h, g, f


def _rounds(data: bytes, h: int, g: int, f: int) -> tuple[int, int, int]:
    for start in range(0, (len(data) - 1) // 20 * 20, 20):
        a, b, c, d, e = _five_words_at(data, start)
        h = _mur(d, (h + a) & _MASK) + e
        g = _mur(c, (g + b) & _MASK) + a
        f = _mur(b + e * _C1, (f + c) & _MASK) + d + g
        g += f
    return h, g, f


def _finish(h: int, g: int, f: int) -> int:
    for shift in (11, 17):
        g = _rotate(g & _MASK, shift) * _C1
        f = _rotate(f & _MASK, shift) * _C1
    h = _rotate(_stir((h + g) & _MASK), 17) * _C1
    return _rotate(_stir((h + f) & _MASK), 17) * _C1 & _MASK


def _fetch(data: bytes, start: int) -> int:
    word: int = _word_at(data, start)[0]
    return word


def _rotate(word: int, shift: int) -> int:
    return (word >> shift | word << (32 - shift)) & _MASK


def _stir(h: int) -> int:
    return (_rotate(h, 19) * 5 + _N) & _MASK


def _mur(a: int, h: int) -> int:
    a = a * _C1 & _MASK
    return _stir(((a >> 17 | a << 15) * _C2 & _MASK) ^ h)


def _fmix(h: int) -> int:
    h = (h ^ (h >> 16)) * 0x85EBCA6B & _MASK
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & _MASK
    return h ^ (h >> 16)
