"""Logic of operations that operators request by a command or over the API."""
