"""What operators ask of Kronos, whether by a command or over the API."""
