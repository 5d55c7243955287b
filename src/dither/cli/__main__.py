"""`python -m dither.cli`, where the script is not on the path."""

from dither.cli import main

main()
