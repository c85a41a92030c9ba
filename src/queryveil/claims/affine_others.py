"""The check of similar meanings and clicks: what released queries are compared by beside their words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from queryveil.arrays import Longs, Ragged, offsets, places, ranges
from queryveil.claims.similarity import clicked, comparable, meanings
from queryveil.log import LocalLog

if TYPE_CHECKING:
    from queryveil.claims.affine import AffineUsers

_TOGETHER = 500_000
"""How many pairs are compared at a time, which bounds the memory."""


@dataclass(frozen=True)
class Others:
    """What released queries are compared by beside their words; queries are places among the released ones."""

    meaning: Longs
    """The row of each query among `vectors`, -1 for one that is not compared by its meaning."""
    vectors: NDArray[np.int16]
    theta_meaning: float
    clicks: Ragged
    """The addresses of each query: `address`, ascending."""
    address: NDArray[np.int32]
    theta_clicks: float

    @classmethod
    def of(cls, claim: "AffineUsers", log: LocalLog, released: Longs, concept: NDArray[np.bool_]) -> "Others":
        """What some queries are compared by, if they hold a concept."""
        some = comparable(log, max(claim.concept_min_users, claim.min_term_users))[released] & concept
        meaning, vectors = np.full(len(released), -1, np.int64), np.empty((0, 1), np.int16)
        if claim.theta_meaning is not None:
            order = np.flatnonzero(some)
            found = meanings(log, released[order])
            meaning[places(released, found.query)] = np.arange(len(found.query))
            vectors = found.vector
        size, address = np.zeros(len(released), np.int64), np.empty(0, np.int32)
        if claim.theta_clicks is not None:
            led = clicked(log, claim.users)
            place = places(released, led.query)
            ours = (place >= 0) & some[place]
            size, address = np.bincount(place[ours], minlength=len(released)), led.address[ours]
        return cls(meaning, vectors, claim.theta_meaning or 1, Ragged(offsets(size)), address, claim.theta_clicks or 1)

    def alike(self, one: Longs, other: Longs) -> NDArray[np.bool_]:
        """Whether the queries of each pair are similar by meaning or clicks."""
        from queryveil.kernels.close import close, squared
        from queryveil.kernels.witnesses import common_sizes

        found = self._share(one, other, common_sizes(self.clicks.start, self.address, one, other))
        length = squared(self.vectors)
        for begin in range(0, len(one), _TOGETHER):
            a, b = (self.meaning[pair[begin : begin + _TOGETHER]] for pair in (one, other))
            both = np.flatnonzero((a >= 0) & (b >= 0))
            a, b = a[both], b[both]
            dot = np.einsum("ij,ij->i", self.vectors[a], self.vectors[b], dtype=np.int64)
            found[begin + both] |= close(dot.astype(np.float64), length[a], length[b], self.theta_meaning)
        return found

    def _share(self, one: Longs, other: Longs, common: Longs) -> NDArray[np.bool_]:
        """Whether so many common addresses make two queries similar."""
        size, shared = self.clicks.sizes.astype(np.float64), common.astype(np.float64)
        theta2 = self.theta_clicks * self.theta_clicks
        found: NDArray[np.bool_] = (common > 0) & (shared * shared >= theta2 * (size[one] * size[other]))
        return found

    def near(self, some: Longs) -> tuple[Longs, Longs]:
        """All queries that are similar to some by meaning or clicks: how many for each, and these."""
        from queryveil.kernels.close import close_to
        from queryveil.kernels.witnesses import common_sizes

        query = np.flatnonzero(self.meaning >= 0)
        meant = np.flatnonzero(self.meaning[some] >= 0)
        pairs = [np.empty(0, np.int64)]
        for x, y in close_to(self.vectors[self.meaning[some[meant]]], self.vectors, self.theta_meaning):
            pairs.append(meant[x] << 32 | query[y])
        # By clicks: all that share an address.
        order = np.argsort(self.address, kind="stable")
        edge = np.searchsorted(self.address[order], np.arange(int(self.address.max(initial=-1)) + 2))
        owner = self.clicks.owners[order]
        for begin in range(0, len(some), 1000):
            part = some[begin : begin + 1000]
            mine = self.address[self.clicks.positions(part)]
            sizes = edge[mine + 1] - edge[mine]
            place = np.repeat(np.repeat(np.arange(len(part)) + begin, self.clicks.sizes[part]), sizes)
            met = np.unique(place << 32 | owner[ranges(edge[mine], sizes)])
            one, other = some[met >> 32], met & 0xFFFFFFFF
            pairs.append(met[self._share(one, other, common_sizes(self.clicks.start, self.address, one, other))])
        packed = np.unique(np.concatenate(pairs))
        packed = packed[some[packed >> 32] != packed & 0xFFFFFFFF]
        return np.bincount(packed >> 32, minlength=len(some)), packed & 0xFFFFFFFF
