"""Inside the guard: `virtual` holds the stand-ins for time and chance, `refuse` what is refused and who asked for it."""
