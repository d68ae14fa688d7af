"""The dashboard: pages without scripts, for custodians, analysts, auditors and producers."""
