"""The figures: each script measures one, beside a limit measured in the same run."""
