"""Operations that operators ask of Kronos, by a command or over the API."""
