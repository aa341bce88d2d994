"""Functions behind the operations that operators request by a command or over the API."""
