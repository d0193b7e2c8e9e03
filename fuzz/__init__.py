"""Fuzz targets, run by `./dev fuzz`; the tests give them a short run too."""
