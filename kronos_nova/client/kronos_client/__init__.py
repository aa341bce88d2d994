"""The client of Kronos. It has the operations of the API with their types, the commands, and a
client that calls the API over HTTP."""
