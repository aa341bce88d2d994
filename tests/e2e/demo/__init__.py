"""The demo: a cloud on this machine, unevenly loaded, that Kronos balances while you look on."""
