"""Feeds every boundary of Kronos with input that is not sent in good faith."""
