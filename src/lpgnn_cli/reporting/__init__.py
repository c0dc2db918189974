"""What a person sees of a run: progress while it goes, then summary, figures and closing table."""
