"""Pictures and displays: drawn from public values, for notebooks, terminals, files and pages."""
