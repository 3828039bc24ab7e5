"""Lists of questions: order, filters, pages, rows."""
