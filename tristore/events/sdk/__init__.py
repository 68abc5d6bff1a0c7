"""What publishing and subscribing programs import."""
