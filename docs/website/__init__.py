"""The documentation site: built from README, docs/ and the examples by Zensical, and checked as it is built.

- `sources.py` says which files of the repository are pages, and where they are on the site.
- `navigation.py` orders them, by `zensical.toml`.
- `staging.py` copies them for the generator, with links that work there.
- `llms.py` lists the same pages as plain text, and `api_text.py` puts signatures and docstrings into them.
- `checks.py` reads the built site: no broken link, nothing loaded from another host.
- `builder.py` runs these steps in order, `server.py` shows the result.
- `man_pages.py` writes the man pages, which a wheel has and the site has not.

Only `builder.py` runs Zensical, as a command. The rest needs the standard library and griffe, so that the tests run it.
"""
