"""The client of Kronos: the operations of the API with the types of their requests and responses,
the commands, and a client that calls the API over HTTP."""
