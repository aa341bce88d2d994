"""Nova's own functional tests, out of the installed package and unchanged, with Kronos in the
services and without, and what differs between the two."""
