"""The simulated operating system: processes, signals, executables, networks, log lines. No container is known here."""
