"""Microaggregation: users with similar interests in groups, each with one shared record."""
