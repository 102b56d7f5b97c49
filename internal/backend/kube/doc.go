// Package kube carries tasks out as pods of a Kubernetes cluster: one pod a task, without any privilege.
//
// A pod is found again by the attempt that its annotation names, whatever it is called, so that a task is adopted after a
// crash and its command is not run twice. The pod keeps a finalizer until its result is in the journal (see
// [Backend.Settled]): however it is deleted, its end can be read. One informer watches the pods of all runs; what a pod's
// status means is decided by a pure function, see outcome.go. Resource templates need no pod: they act on the cluster with
// the rights of the workflow's service account.
package kube
