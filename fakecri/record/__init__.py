"""What happened: every call as the client saw it. Nothing here changes a call."""
