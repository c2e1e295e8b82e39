"""What runs in containers: programs, one file each, and workloads that a scenario scripts."""
