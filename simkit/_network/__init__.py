"""Private parts of the simulated network: one direction (`pipe`), one end (`endpoint`), trio's socket (`sockets`)."""
