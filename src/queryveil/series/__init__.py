"""Release after release: a series whose releases are safe together."""

from queryveil.series.ledger import Period
from queryveil.series.series import Erased, Series
from queryveil.series.status import Status

__all__ = ["Erased", "Period", "Series", "Status"]
