"""The CRI runtime: sandboxes, containers, images and the rules between them. Pure: no I/O, no clock of its own."""
