"""A complete simulated Kubernetes container runtime."""

__version__ = "0.1.0"
