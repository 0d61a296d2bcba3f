"""What watching costs: `python -m benchmarks`, or single ones by name. They judge, and never fail a build."""
