"""All close pairs of vectors on a graphics processor: time, share of the matrix rate, and equality with the CPU.

It needs only NumPy and PyTorch with Triton: `PYTHONPATH=src python benchmarks/close_gpu.py --millions 1 4 10`.
"""

import argparse
import time

import numpy as np
import torch
from numpy.typing import NDArray

from queryveil.kernels.close import close_pairs, whole
from queryveil.kernels.close_cuda import pairs_on_cuda

THETA = 0.85
WIDTH = 128
NEAR = 5
"""How many vectors are near each other, about."""


def vectors_of(n: int) -> NDArray[np.int16]:
    """Vectors around random ones, with cosines around theta within each group."""
    torch.manual_seed(n)
    parts = []
    for _ in range(0, n, 1 << 20):
        size = min(1 << 20, n - len(parts) * (1 << 20))
        base = torch.randn(max(1, size // NEAR), WIDTH, device="cuda")
        some = base[torch.randint(len(base), (size,), device="cuda")] + 0.4 * torch.randn(size, WIDTH, device="cuda")
        parts.append(whole(torch.nn.functional.normalize(some, dim=1).cpu().numpy()))
    return np.concatenate(parts)


def matrix_rate() -> float:
    """Operations a second of a large product of matrices of two-byte floats."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(10):
        a @ a
    torch.cuda.synchronize()
    return 10 * 2 * 8192**3 / (time.perf_counter() - begin)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 4, 10])
    parser.add_argument("--compared", type=int, default=50_000, help="vectors of the comparison with the CPU")
    args = parser.parse_args()
    rate = matrix_rate()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {rate / 1e12:.0f} TFLOP/s", flush=True)
    vectors = vectors_of(args.compared)
    here, there = (close_pairs(vectors, THETA, device=device) for device in ("cpu", "cuda"))
    same = all(np.array_equal(one, other) for one, other in zip(here, there, strict=True))
    print(f"{args.compared:,} vectors: {len(here[1]):,} neighbours, same as on the CPU: {same}", flush=True)
    for millions in args.millions:
        n = round(millions * 1e6)
        vectors = vectors_of(n)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        pairs = sum(len(one) for one, _ in pairs_on_cuda(vectors, THETA))
        seconds = time.perf_counter() - begin
        share = n * (n - 1) / 2 * 2 * WIDTH / seconds / rate
        print(f"{n:,} vectors: {pairs:,} pairs, {seconds:.1f} s, {share:.0%} of the matrix rate", flush=True)


if __name__ == "__main__":
    main()
