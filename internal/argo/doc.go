// Package argo is the front end for Argo Workflows: it reads the manifests that Argo users have (argoproj.io/v1alpha1),
// says what is wrong with them, compiles them into a [program.Program], and projects the engine's state back into the
// Workflow object, status.nodes included, that Argo's tools expect.
//
// The types are our own; their JSON names are facts of Argo v4.1's wire format. Fields that only matter on a cluster are
// carried into the program as Kubernetes' own JSON. Nothing of this package is known to the engine.
package argo
