"""docs/settings.md has a row for every setting, with its default and meaning."""

from tools.generate_settings import TARGET, page


def test_the_settings_page_is_generated_from_the_code() -> None:
    assert TARGET.read_text("utf-8") == page(), "run `make generate`"
    assert "`TRISTORE_DATABASE_URL`" in page()
    assert "`TRISTORE_EVENTS__QUEUE` | `tristore_event_ingress`" in page()
