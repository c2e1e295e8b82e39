"""The command line: one module per command, wiring only. What a command needs is imported when it runs."""
