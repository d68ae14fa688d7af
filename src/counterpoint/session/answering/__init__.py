"""Questions in the units of the analyst, and answers that know their error."""
