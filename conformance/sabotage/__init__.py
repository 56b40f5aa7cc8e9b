"""What an interruption does, by what it is done to.

    scene       what every one of them needs: the units, the client, the record, and how to go on in the background
    strikes     units killed, stopped and kept down; replies lost, late and false
    machines    what a unit stands on: its clock, its disk, its state, its code, another one beside it
    commands    what is asked of the target out of turn: cancel, pause, directions, notices, other runs
    decisions   approvals: decided in time and by whoever may, or otherwise

`conformance.saboteur` says when; each of these says whether anything was there to be struck.
"""
