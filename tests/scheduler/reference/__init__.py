"""Upstream's decisions, spelt out slowly: one node at a time, on plain API objects, nothing kept between two questions.

What the fast scheduler is compared with. Nothing here is shared with it but the parsers of quantities and selectors,
so that a mistake in one is not repeated in the other.
"""
