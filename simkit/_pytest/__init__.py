"""Inside the pytest plugin. `nodes` gives failing seeds their ids; loaded when a test needs them: `inquest` shrinks, explains
and saves a failure, `replay` runs a case again, `block` tells it.
"""
