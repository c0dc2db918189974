"""Sweeps: many `lpgnn train` that finish, resume and use what machines there are.

A job is known by what it computes (`identity`), and its run folder is found by that name, so that
whoever comes later, the same sweep or another one, takes what is there and goes on with the rest.

    commands/sweep.py   composes, plans, runs, reports
    plan                the jobs of a batch, and which of them are to be computed
    supervisor          between Hydra's sweeper and its launcher: skips, launches, settles, retries
    function            what a launcher runs: one job, from its lock to its result
    pool                jobs in worker processes of this machine, with slots for GPUs
    leaderboard         what came out
"""
