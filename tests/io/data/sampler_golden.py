"""Computes the order of samples independently and prints the golden values of sampler_test.cc."""

MASK = (1 << 64) - 1


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def permutation(n, key):
    """Returns the list p where p[i] is the position of element i of range(n)."""
    bits = (n - 1).bit_length()
    low_bits = (bits + 1) // 2
    keys = []
    for _ in range(8):
        key = (key + 0xD1342543DE82EF95) & MASK
        keys.append(mix64(key))

    def once(x):
        low, high = x % (1 << low_bits), x >> low_bits
        for r, k in enumerate(keys):
            half, width = (low, bits - low_bits) if r % 2 == 0 else (high, low_bits)
            change = (((half + k) * 0x9E3779B97F4A7C15) & MASK) >> 32
            change %= 1 << width
            low, high = (low, high ^ change) if r % 2 == 0 else (low ^ change, high)
        return high << low_bits | low

    def walk(x):
        x = once(x)
        while x >= n:
            x = once(x)
        return x

    return [walk(i) for i in range(n)]


def epoch_key(seed, epoch):
    return mix64(mix64(seed) ^ epoch)


def block_epoch(samples, block, seed, epoch):
    key = epoch_key(seed, epoch)
    blocks = [list(range(b, min(b + block, samples))) for b in range(0, samples, block)]
    laid_out = [s for b in permutation(len(blocks), key) for s in blocks[b]]
    order = []
    for number, first in enumerate(range(0, samples, 16 * block)):
        window = laid_out[first:first + 16 * block]
        window_key = mix64(key ^ mix64(number + 1))
        order += [window[i] for i in permutation(len(window), window_key)]
    return order


def main():
    first, second = (block_epoch(1003, 10, 1, e) for e in (0, 1))
    print("block ", first[0], first[1], first[500], first[1002], second[0])
    first, second = (permutation(1003, epoch_key(1, e)) for e in (0, 1))
    print("global", first[0], first[1], first[500], first[1002], second[0])


if __name__ == "__main__":
    main()
