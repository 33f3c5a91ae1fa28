"""Pictures of robots. Importing this needs no matplotlib."""
