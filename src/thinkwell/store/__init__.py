"""Storage: one database for all agents of an app, named queries inside transactions.

`base.py` says what a store is, `open.py` makes one from a URL, `sqlite.py` is the built-in
driver, `ownership.py` keeps two hosts from writing for one agent. SQL lives in `queries/*.sql`,
the schema in `schema.sql` and, step by step, in `migrations/`.
"""
