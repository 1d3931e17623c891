"""Notices nodes that are not well, and keeps pods away from them."""
