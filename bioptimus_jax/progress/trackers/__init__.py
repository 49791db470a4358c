"""Where the numbers of metrics.jsonl go besides: a file a tracker, whose name is a value of `runtime.trackers`."""
