"""SipHash-c-d with 128-bit output, as the paper and its reference code write it."""

MASK = 2**64 - 1


def rotl(x: int, b: int) -> int:
    return ((x << b) | (x >> (64 - b))) & MASK


def siphash128(key: bytes, data: bytes, c: int, d: int) -> tuple[int, int]:
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [0x736F6D6570736575 ^ k0, 0x646F72616E646F6D ^ k1, 0x6C7967656E657261 ^ k0, 0x7465646279746573 ^ k1]
    v[1] ^= 0xEE

    def rounds(n: int) -> None:
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    whole = len(data) // 8 * 8
    blocks = [data[i : i + 8] for i in range(0, whole, 8)]
    tail = data[whole:] + bytes(7 - len(data[whole:])) + bytes([len(data) % 256])
    for block in [*blocks, tail]:
        m = int.from_bytes(block, "little")
        v[3] ^= m
        rounds(c)
        v[0] ^= m
    v[2] ^= 0xEE
    rounds(d)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(d)
    return low, v[0] ^ v[1] ^ v[2] ^ v[3]
