// Package e2e tests sluice on a real cluster: pods under enforced Pod Security, hooks, crashes of the controller, and the
// peers' own clients. `make e2e` runs it; without a cluster, and without what brings one up, it is skipped.
package e2e
