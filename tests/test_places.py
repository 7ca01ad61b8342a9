"""The course in places that are not a home: no HOME, no entry in passwd, folders that may not be written to."""

import pytest

from course_lib.text import CorpusUnavailable, download, load_corpus


@pytest.fixture
def homeless(monkeypatch):
    def os_cache(name):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pooch.os_cache", os_cache)


def test_without_a_home_the_text_in_the_data_folder_is_found(homeless, monkeypatch, tmp_path):
    text = "To be, or not to be"
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setattr(download, "what_is_wrong", lambda content, where: "")
    (tmp_path / download.FILE_NAME).write_text(text, encoding="utf-8")
    assert load_corpus("tinyshakespeare").text == text


def test_without_a_home_and_without_the_text_a_sentence_says_what_to_do(homeless, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_DATA", str(tmp_path))
    monkeypatch.setenv("COURSE_OFFLINE", "1")
    with pytest.raises(CorpusUnavailable, match="copy the file to"):
        load_corpus("tinyshakespeare")
    assert load_corpus("hello").text.startswith("hello")  # what is shipped needs no folder of the user's


def test_without_a_home_nor_a_folder_to_write_to_the_folders_are_named(homeless, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("COURSE_DATA", str(tmp_path / "file" / "data"))  # a folder inside a file cannot be made
    monkeypatch.setattr(download, "_failed", {})
    with pytest.raises(CorpusUnavailable, match=r"(?s)no folder to keep tinyshakespeare in.*COURSE_DATA"):
        download.download("http://127.0.0.1:9/never-asked")
