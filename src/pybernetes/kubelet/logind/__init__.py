"""systemd-logind, who knows that the machine is about to go down, over D-Bus (a small client of our own)."""
