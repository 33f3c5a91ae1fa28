"""The web page, pictures and animations of robots. Importing this needs neither matplotlib nor viser."""
