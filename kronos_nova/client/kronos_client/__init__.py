"""The client of Kronos: the operations and their types, the commands, and a client over HTTP."""
