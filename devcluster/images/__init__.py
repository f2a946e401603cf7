"""Container images for the clusters: built by Docker where there is an engine, else by buildah."""
