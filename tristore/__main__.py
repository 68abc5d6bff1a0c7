"""`python -m tristore`: how the parts start one another."""

from tristore.cli import main

main()
