"""The edge: sockets and HTTP in, frames out. It knows agents only through `HostClient`."""
