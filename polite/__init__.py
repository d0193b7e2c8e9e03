"""polite: may I fetch this URL, and now? robots.txt and pacing for asyncio crawlers."""
