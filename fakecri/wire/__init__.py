"""What crosses the socket: messages, methods, and which of them each release of the interface has.

Generated from the tables in `protos/since/` by `protos/generate.py`; nothing here is edited by hand but code.
"""
