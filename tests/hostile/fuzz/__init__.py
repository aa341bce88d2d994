"""Feeds every boundary of Kronos with what nobody would send in good faith."""
