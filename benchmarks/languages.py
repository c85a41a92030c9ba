"""Words: what cutting by script costs a log with blanks, and how fast scripts without blanks are cut.

An English log is cut as before scripts were looked at (at blanks, after masks are taken out), and as now, by turns in
one process: the best of each counts. A log is read in the same two ways. Queries in other scripts are made of common
words at random. Everything runs in one thread, and time is that of the processor.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from unittest.mock import patch

from benchmarks.harness import log_file

WORDS = {
    "zh": "手机 价格 北京 天气 预报 大学 招生 下载 免费 电影 在线 观看 小说 游戏 攻略 什么 意思 怎么 上海 地图 医院"
    " 股票 行情 今日 新闻 火车票 查询 苹果 笔记本 电脑 报价 旅游 酒店 机票 学校 考试 成绩 公司 工作 招聘 房价 汽车",
    "ja": "東京 大阪 天気 予報 ラーメン おすすめ 新幹線 時刻表 猫 の 飼い方 日本語 を 勉強 する 方法 引っ越し 費用 映画"
    " 無料 ゲーム 攻略 レシピ 簡単 病院 地図 電話 番号 ニュース 株価 旅行 ホテル 予約",
    "ko": "서울 날씨 부산 맛집 추천 영화 무료 다운로드 게임 공략 기차 시간표 병원 지도 전화 번호 뉴스 여행 호텔",
    "th": "ร้าน อาหาร ใกล้ ฉัน พยากรณ์ อากาศ วันนี้ ราคา ทอง โรงแรม เชียงใหม่ วิธี ทำ แกง หนัง ฟรี เกม ข่าว แผนที่",
}
PARTICLES = ("", "", "에서", "까지", "를", "은")
DISTINCT = 200_000


def report(sizes: Sequence[int], times: int) -> Iterator[str]:
    """The tables of README.md."""
    for users in sizes:
        yield f"{users:,} users, English\n"
        yield "| job | before | now | ratio |"
        yield "|---|---|---|---|"
        for job, (before, now) in (("words", words(users, times)), ("ingest", ingest(users, times))):
            yield f"| {job} | {before:.3f} s | {now:.3f} s | **{now / before:.2f}** |"
        yield ""
    yield "| language | distinct queries | with its dictionary | single characters and pairs |"
    yield "|---|---|---|---|"
    for id in WORDS:
        n, speed, characters = scripts(id, times)
        yield f"| {id} | {n:,} | {speed:,.0f} a second | {characters:,.0f} a second |"


def _best(times: int, *jobs: Callable[[], object]) -> list[float]:
    """The least time of the processor that each job took, of several runs by turns."""
    found = [float("inf")] * len(jobs)
    for _ in range(max(times, 3)):
        for place, job in enumerate(jobs):
            start = time.process_time()
            job()
            found[place] = min(found[place], time.process_time() - start)
    return found


def words(users: int, times: int) -> list[float]:
    """Seconds to cut the distinct queries of a log into words, before and now."""
    from queryveil import read_log
    from queryveil.text import language, split_at_blanks
    from queryveil.text.masks import without_masks

    queries = read_log(log_file(users), threads=1).query_text
    english = language()
    return _best(times, lambda: split_at_blanks(without_masks(queries)), lambda: english.words(queries))


def ingest(users: int, times: int) -> list[float]:
    """Seconds to read a log, before and now."""
    from queryveil import read_log
    from queryveil.text import languages

    def before() -> None:
        with patch.object(languages, "spaced", lambda texts, cutters: texts):
            read_log(log_file(users), threads=1)

    return _best(times, before, lambda: read_log(log_file(users), threads=1))


def scripts(id: str, times: int) -> tuple[int, float, float]:
    """Distinct queries of a language, and how many are cut a second with its dictionary and without."""
    from dataclasses import replace

    import pyarrow as pa

    from queryveil.text import language
    from queryveil.text.cutting import CHARACTERS

    draw = random.Random(1)
    known = WORDS[id].split()
    between = " " if id == "ko" else ""
    queries: set[str] = set()
    while len(queries) < DISTINCT:
        some = draw.choices(known, k=draw.randint(2, 5))
        if id == "ko":
            some[-1] += draw.choice(PARTICLES)
        queries.add(between.join(some))
    texts = pa.array(sorted(queries))
    own = language(id)
    plain = [replace(one, cutter=replace(one.cutter, cut=None, dictionary=CHARACTERS)) for one in own.cutters]
    without = replace(own, cutters=tuple(plain))
    dictionary, characters = _best(times, lambda: own.words(texts), lambda: without.words(texts))
    return len(texts), len(texts) / dictionary, len(texts) / characters
