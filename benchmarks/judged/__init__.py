"""Crawlers with their own polite settings, each judged by `polite judge`: a program a crawler, which gets the seeds."""
