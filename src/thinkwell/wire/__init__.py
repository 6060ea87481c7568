"""The wire protocol as data: frames, decoding, encoding. Pure; no sockets."""
