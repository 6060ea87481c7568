"""Store URLs: which are understood and what the error says about the others (DESIGN §4)."""

from __future__ import annotations

import pytest

from thinkwell.core.errors import ConfigurationError
from thinkwell.store.open import store_from_url


class TestStoreUrls:
    async def test_three_slashes_are_relative_and_missing_folders_are_made(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        store = store_from_url("sqlite:///.thinkwell/deep/thinkwell.db")
        await store.open()
        await store.close()
        assert (tmp_path / ".thinkwell" / "deep" / "thinkwell.db").exists()

    async def test_four_slashes_are_absolute(self, tmp_path):
        store = store_from_url(f"sqlite:///{tmp_path}/a.db")
        await store.open()
        await store.close()
        assert (tmp_path / "a.db").exists()

    @pytest.mark.parametrize("url", ["sqlite://:memory:", "sqlite:///:memory:"])
    async def test_memory_leaves_no_file(self, url, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        store = store_from_url(url)
        await store.open()
        await store.close()
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("url", ["mysql://x/y", "thinkwell.db", "", "sqlite:thinkwell.db"])
    def test_an_unknown_scheme_raises_with_the_right_forms(self, url):
        with pytest.raises(ConfigurationError, match=r"sqlite:///folder/file\.db"):
            store_from_url(url)

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://a.db", "sqlite:///dir/"])
    def test_a_url_without_a_file_raises(self, url):
        with pytest.raises(ConfigurationError, match="does not name a database file"):
            store_from_url(url)

    def test_postgresql_says_that_it_is_not_built_yet(self):
        with pytest.raises(ConfigurationError, match="not built yet"):
            store_from_url("postgresql://localhost/app")
