"""Logs as site searches, analytics tools and databases export them: tiny, and made up.

Each is its bytes, which column is which, and the first and last time.
"""

import json
from typing import NamedTuple


class Export(NamedTuple):
    """A file, what is to be found in it, and the first of its times."""

    data: bytes
    columns: dict[str, str]
    first: str | None


def _delimited(header: str, *rows: str, encoding: str = "utf-8", end: str = "\n") -> bytes:
    return "".join(row + end for row in (header, *rows)).encode(encoding)


def _lines(*objects: dict[str, object]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in objects).encode()


EXPORTS = {
    "shop": Export(
        _delimited(
            "customer_id,search_term,created_at,clicked_product_id,position",
            "c1,red shoes,2026-01-05 10:00:00,sku-1,1",
            'c2,"boots, brown",2026-01-06 11:00:00,,',
        ),
        {"user": "customer_id", "query": "search_term", "time": "created_at", "rank": "position",
         "url": "clicked_product_id"},
        "2026-01-05 10:00:00",
    ),
    "ga4 in bigquery": Export(
        _delimited(
            "user_pseudo_id,event_timestamp,event_name,search_term",
            "123.456,1767607200000000,view_search_results,tent",
            "789.012,1767693600000000,view_search_results,stove",
        ),
        {"user": "user_pseudo_id", "query": "search_term", "time": "event_timestamp"},
        "2026-01-05 10:00:00",
    ),
    "matomo": Export(
        _delimited("visitorId\tserverTime\tkeyword\tsearch_cat", "ab\t2026-01-05 10:00:00\tparking\tall"),
        {"user": "visitorId", "query": "keyword", "time": "serverTime"},
        "2026-01-05 10:00:00",
    ),
    "mixpanel": Export(
        _lines({"distinct_id": "d1", "time": 1767607200, "search_query": "loan"}),
        {"user": "distinct_id", "query": "search_query", "time": "time"},
        "2026-01-05 10:00:00",
    ),
    "segment": Export(
        _lines({"anonymousId": "a1", "timestamp": "2026-01-05T10:00:00.000Z", "query": "jacket"}),
        {"user": "anonymousId", "query": "query", "time": "timestamp"},
        "2026-01-05 10:00:00",
    ),
    "german excel": Export(
        _delimited(
            "Nutzer;Suchbegriff;Datum", "1;Käse;05.01.2026 10:00", "2;Brot;17.01.2026 11:30",
            encoding="cp1252", end="\r\n",
        ),
        {"user": "Nutzer", "query": "Suchbegriff", "time": "Datum"},
        "2026-01-05 10:00:00",
    ),
    "excel with sep": Export(
        b"\xef\xbb\xbf" + _delimited("sep=;", "User ID;Query;Time", "1;tea;2026-01-05 10:00", end="\r\n"),
        {"user": "User ID", "query": "Query", "time": "Time"},
        "2026-01-05 10:00:00",
    ),
    "excel unicode text": Export(
        _delimited("User\tSearch Terms\tDate", "1\ttea\t2026-01-05 10:00", encoding="utf-16", end="\r\n"),
        {"user": "User", "query": "Search Terms", "time": "Date"},
        "2026-01-05 10:00:00",
    ),
    "american": Export(
        _delimited("Visitor,Search Phrase,Timestamp", "v1,taxes,1/5/2026 3:04 PM", "v2,forms,1/25/2026 9:00 AM"),
        {"user": "Visitor", "query": "Search Phrase", "time": "Timestamp"},
        "2026-01-05 15:04:00",
    ),
    "psql unaligned": Export(
        _delimited("member_id|query_text|searched_at", "7|bus times|2026-01-05 10:00:00+00"),
        {"user": "member_id", "query": "query_text", "time": "searched_at"},
        "2026-01-05 10:00:00",
    ),
    "mysql batch": Export(
        _delimited("uid\tq\tts\trank\turl", "7\tbus\t2026-01-05 10:00:00\tNULL\tNULL", "8\ttram\t2026-01-06\t2\t/t"),
        {"user": "uid", "query": "q", "time": "ts", "rank": "rank", "url": "url"},
        "2026-01-05 10:00:00",
    ),
    "postgres copy": Export(
        _delimited("account_id\tkeywords\tcreated\tclick_position", "7\tbus\t2026-01-05 10:00:00\t\\N"),
        {"user": "account_id", "query": "keywords", "time": "created", "rank": "click_position"},
        "2026-01-05 10:00:00",
    ),
    "pandas": Export(
        _delimited(",user,query,time,position", "0,u1,lamp,1767607200.0,3.0", "1,u2,desk,1767607260.5,"),
        {"user": "user", "query": "query", "time": "time", "rank": "position"},
        "2026-01-05 10:00:00",
    ),
    "kibana": Export(
        _delimited('"@timestamp","client_id","search_text"', '"Jan 5, 2026 @ 10:00:00","c","vpn"'),
        {"user": "client_id", "query": "search_text", "time": "@timestamp"},
        "2026-01-05 10:00:00",
    ),
    "rest dump": Export(
        json.dumps([{"userId": "u1", "searchTerm": "visa", "createdAt": "2026-01-05T10:00:00Z"}], indent=2).encode(),
        {"user": "userId", "query": "searchTerm", "time": "createdAt"},
        "2026-01-05 10:00:00",
    ),
    "apache": Export(
        _delimited("cookie_id,q,request_time", "k,map,05/Jan/2026:12:00:00 +0200"),
        {"user": "cookie_id", "query": "q", "time": "request_time"},
        "2026-01-05 10:00:00",
    ),
    "library": Export(
        _delimited("Patron ID,Search,Date", "p,herbs,05-JAN-26"),
        {"user": "Patron ID", "query": "Search", "time": "Date"},
        "2026-01-05 00:00:00",
    ),
    "intranet": Export(
        _delimited("employee_number;search_string;log_date;clicked_doc", "e;leave;2026/1/5 10:00;/doc"),
        {"user": "employee_number", "query": "search_string", "time": "log_date", "url": "clicked_doc"},
        "2026-01-05 10:00:00",
    ),
    "sessions": Export(
        _delimited("session_id,query,timestamp_ms", "s,soup,1767607200000"),
        {"user": "session_id", "query": "query", "time": "timestamp_ms"},
        "2026-01-05 10:00:00",
    ),
    "R": Export(
        _delimited('"user_hash"\t"phrase"\t"day"', '"h"\t"a ""b"""\t"2026-01-05"'),
        {"user": "user_hash", "query": "phrase", "time": "day"},
        "2026-01-05 00:00:00",
    ),
}  # fmt: skip
"""By what wrote them."""
