"""What a run lives on: devices, worker processes, several hosts, signals, disks, and buckets."""
