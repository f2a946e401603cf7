module sparkdrain.io/devcluster/pause

go 1.26.0
