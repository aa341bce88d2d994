"""One evaluation as a line of steps."""
