"""The edge: what stands between the network and the routes."""
