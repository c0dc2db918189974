"""Typed configuration: schemas here, values and their descriptions in `conf/`."""
