"""What a running turn writes: turn rows, the chunk log, the tool ledger, and the one road to the
disk.
"""
