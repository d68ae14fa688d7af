"""The databases that hold rows: their dialects, how data are loaded, how rows are sampled."""
