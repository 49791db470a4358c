"""Run folders and inputs in a bucket: what a stage needs is fetched, what it made is put back."""
