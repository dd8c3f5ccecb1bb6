"""One process with every door on one engine: the application, its sockets, its workers, and its orderly end."""
