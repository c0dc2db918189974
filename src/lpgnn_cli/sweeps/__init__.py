"""Sweeps: many `lpgnn train` that finish, resume and use what machines there are.

A job is known by what it computes (`identity`), and its run folder is found by that name, so that
whoever comes later, the same sweep or another one, takes what is there and goes on with the rest.

    session             one start of a sweep: composes, plans, runs, reports
    supervisor          between Hydra's sweeper and its launcher: skips, launches, settles, retries
    function            what a launcher runs: one job, from its lock to its result
    jobs, identity      a job, its folder, and the name that it is found by
    launchers           what sweeps need of a launcher; the launchers are in hydra_plugins
    workers, pool       jobs in worker processes of this machine, with slots for GPUs
    slurm               jobs in a Slurm job array
    job_mirrors         the sweep and its jobs in MLflow
    board, leaderboard  what came out
"""
