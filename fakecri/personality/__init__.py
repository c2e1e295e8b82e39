"""Real runtimes' words and ways, as data; chosen by name."""
