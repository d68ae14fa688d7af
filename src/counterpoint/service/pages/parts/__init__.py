"""What pages are made of: bars, strips, windows, forms, figures and words."""
