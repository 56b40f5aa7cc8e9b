"""Private parts of the simulated disk: one file's bytes (`inode`), directory entries (`namespace`), faults (`faults`)."""
