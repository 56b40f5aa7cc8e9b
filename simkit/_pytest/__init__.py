"""Inside the pytest plugin. Light: `nodes` gives failing seeds and parts of tests their ids, `session` hears of all reports,
`looking` is what one wants to see of a replay. Loaded when a test needs them: `splitting` cuts seeds into parts, `inquest`
shrinks, explains and saves a failure, `block` and `page` tell it, `replay` runs a case again, `redrawing` explains and draws
what failed there, `telling` puts it all into reports, `never` lists named points that nothing has hit.
"""
