"""A campaign over the workers of a Dask cluster, told on standard output; runs where `distributed` is installed."""

from __future__ import annotations

import sys

from simkit import campaign
from tests.simkit import campaign_programs


def main(seeds: int) -> None:
    """Start a cluster of two processes on this machine and use it."""
    import distributed

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        print(campaign(campaign_programs.odd_seeds_differ, seeds, executor=client.get_executor()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
