"""Mutated files against every reader: a seeded campaign in worker processes with limits (``make fuzz``).

`corpus` makes the whole files, `mutate` breaks them, `worker` reads one after the other as a user would, `campaign`
deals the cases out, watches the workers and counts. A case is its number: ``python -m fuzz --case 1234`` repeats one.
"""
