"""Segment operations over the arcs of a graph union."""
