"""Named queries: how files are read and how they are spelled for each driver (DESIGN §5)."""

from __future__ import annotations

import re
import sqlite3

import pytest

from thinkwell.core.errors import ConfigurationError
from thinkwell.store.migrate import migrate_sqlite
from thinkwell.store.queries import (
    collect_queries,
    load_queries,
    parse_queries,
    statements,
    to_psycopg,
)


@pytest.fixture
def database():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate_sqlite(connection, "memory")
    yield connection
    connection.close()


class TestReading:
    def test_a_header_starts_a_query_and_its_comment_says_what_it_does(self):
        (query,) = parse_queries("-- name: one\n-- Says one.\nSELECT 1\n  FROM t;\n", "a.sql")
        assert (query.name, query.about, query.sql) == ("one", "Says one.", "SELECT 1\n  FROM t")

    def test_a_comment_above_the_header_belongs_to_it(self):
        first, second = parse_queries(
            "-- name: one\n-- A.\nSELECT 1;\n-- B.\n-- name: two\nSELECT 2;", "a.sql"
        )
        assert (first.about, second.about) == ("A.", "B.")

    def test_a_comment_inside_a_statement_stays_with_it(self):
        first, second = parse_queries(
            "-- name: one\nSELECT 1,\n-- A.\n2;\n-- name: two\nSELECT 2;", "a.sql"
        )
        assert (first.sql, first.about, second.about) == ("SELECT 1,\n2", "A.", "")

    def test_a_name_used_twice_raises_and_names_both_files(self):
        text = "-- name: one\nSELECT 1;"
        with pytest.raises(ConfigurationError, match=r"'one': in a\.sql and in b\.sql"):
            collect_queries([("a.sql", text), ("b.sql", text)])

    def test_a_statement_without_a_name_raises(self):
        with pytest.raises(ConfigurationError, match="SELECT 1"):
            parse_queries("SELECT 1;", "a.sql")

    @pytest.mark.parametrize("text", ["-- name: one\n-- Only words.", "-- name: One\nSELECT 1"])
    def test_a_query_without_a_statement_or_with_a_bad_name_raises(self, text):
        with pytest.raises(ConfigurationError, match="needs a lower-case name"):
            parse_queries(text, "a.sql")


class TestThePackagesQueries:
    def test_each_has_a_comment(self):
        assert [query.name for query in load_queries().values() if not query.about] == []

    def test_each_fits_the_schema(self, database):
        for name, sql in statements("sqlite").items():
            params = dict.fromkeys(re.findall(r":(\w+)", sql))
            assert database.execute(f"EXPLAIN {sql}", params).fetchall(), name

    def test_no_placeholder_is_left_for_psycopg(self):
        for name, sql in statements("psycopg").items():
            assert not re.search(r"(?<!:):\w", re.sub(r"'[^']*'", "", sql)), name


class TestSpellingForPsycopg:
    def test_placeholders_become_named_ones(self):
        assert to_psycopg("a = :a AND b=:b_2") == "a = %(a)s AND b=%(b_2)s"

    def test_literals_keep_their_colons_and_casts_stay(self):
        assert to_psycopg("a = ':no' AND b = 'it''s :no' AND c = :c::text") == (
            "a = ':no' AND b = 'it''s :no' AND c = %(c)s::text"
        )

    def test_a_percent_sign_is_doubled_everywhere(self):
        assert to_psycopg("a LIKE '%x' AND b % 2 = :c") == "a LIKE '%%x' AND b %% 2 = %(c)s"

    def test_rows_of_a_json_array_have_their_own_name(self):
        assert to_psycopg("SELECT value FROM json_each(:ids)") == (
            "SELECT value FROM json_array_elements_text(%(ids)s)"
        )
