"""One evaluation of aggregates, as a sequence of steps."""
