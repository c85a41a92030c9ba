"""Chinese: words of jieba's dictionary."""

from collections.abc import Sequence

from queryveil.text.cutting import Cutter
from queryveil.text.languages import Cues, Language

_STOP_WORDS = """
的 了 和 是 在 与 及 或 也 都 就 而 但 吗 呢 吧 啊 着 过 地 得 之 于 以 从 到 把 被 对 向 由 让 给 跟 为 因为 所以 如果
我 你 他 她 它 我们 你们 他们 这 那 这个 那个 这些 那些 哪 哪个 哪些 哪里 谁 什么 怎么 怎样 如何 为什么 多少 几 有 没有
不 很 还 又 再 会 能 可以 要 上 下 里 中 等 请问
"""


def _words(runs: Sequence[str]) -> list[str]:
    import rjieba

    # A line feed ends every run, so that no word goes beyond it.
    return " ".join(rjieba.cut("\n".join(runs))).split("\n")


_PHONES = "电话 手机 手机号 手机号码 电话号码 号码 联系电话 传真 座机 热线"

LANGUAGE = Language(
    id="zh",
    label="Chinese",
    stop_words=frozenset(_STOP_WORDS.split()),
    scripts=("han",),
    countries=("CN", "TW", "SG"),
    cutter=Cutter("Chinese", ("han",), _words, ("rjieba",)),
    cues=Cues(
        phones=frozenset(_PHONES.split()),
    ),
)
