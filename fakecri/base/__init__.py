"""Words that every layer shares: steps, tasks, reasons, ids, ports. Nothing here knows what a container is."""
