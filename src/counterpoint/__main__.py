"""`python -m counterpoint` is the same as the `counterpoint` command."""

from counterpoint.cli import main

main()
