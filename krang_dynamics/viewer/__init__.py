"""Pictures and animations of robots. Importing this needs no matplotlib."""
