"""MLflow follows the run folder.

A run writes its folder and nothing else. A separate process (`tracking.follow`) reads the folder
while it grows and sends to MLflow what the store does not have yet, so training neither imports
mlflow nor waits for a store. `lpgnn sync` does the same in the foreground, later.

    live = tracking.start(config.tracking, run)   # None for tracking=none
    ...                                           # an Observer like any other, told last
    live.run_ended(run, summary)                  # after figures are written: waits for the mirror

`mirror.Mirror` does all the sending; `state.TrackingState` (`tracking.json`) remembers what was
sent; `store.open_store` makes the store and the experiment once, whoever comes first.
"""

from lpgnn_cli.tracking.live import LiveTracking, start

__all__ = ["LiveTracking", "start"]
