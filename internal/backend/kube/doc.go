// Package kube carries tasks out as pods of a Kubernetes cluster: one pod a task, without any privilege.
package kube

import (
	_ "k8s.io/client-go/kubernetes"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/controller-runtime/pkg/manager"
)
