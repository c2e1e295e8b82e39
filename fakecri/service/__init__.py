"""The world outside: sockets, gRPC, the machine's clock, real files. Everything that is not simulation is here."""
