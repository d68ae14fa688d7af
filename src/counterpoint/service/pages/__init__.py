"""The dashboard: pages made on the server, whole without script. One file for each page, its markup in `templates/`."""
