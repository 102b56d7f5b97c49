package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/sluice-ml/sluice/test/cluster"
)

// kubeSite is what the suites that run on a cluster share: the cluster with its images and a running controller, and a
// namespace of its own for every manifest.
type kubeSite struct {
	options
	// programs is the folder of programs that Argo's images have, python that of those of pipelines' images.
	programs, python string
	// class is the storage class of the volumes that claims can be bound to.
	class string

	site *cluster.Site
	next atomic.Int64
}

func (s *kubeSite) prepare(ctx context.Context) (string, error) {
	site, err := cluster.Start(ctx, cluster.Options{
		Scripts: s.cluster, Sluice: s.sluice, Work: s.work, Programs: s.programs, S3: s.s3, Log: os.Stderr,
		Packages: s.packages, PythonPrograms: s.python, Instance: s.instance,
	})
	if errors.Is(err, cluster.ErrNone) {
		return err.Error(), nil
	}
	s.site = site
	return "", err
}

func (s *kubeSite) finish(ctx context.Context) error {
	if s.site == nil {
		return nil
	}
	return s.site.Close(ctx)
}

// namespace makes a namespace that enforces a level of Pod Security, with volumes that claims in it can be bound to. done
// removes all of it, unless there are differences whose remains are to be kept; it gives the differences.
func (s *kubeSite) namespace(ctx context.Context, level string) (name string, done func([]string) ([]string, error), err error) {
	name = fmt.Sprintf("conformance-%d", s.next.Add(1))
	if s.instance != "" {
		name = s.instance + "-" + name
	}
	remove, err := s.site.Namespace(ctx, name, level)
	if err != nil {
		return "", nil, err
	}
	volumes, err := s.volumes(ctx, name)
	if err != nil {
		return "", nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
	}
	return name, func(found []string) ([]string, error) {
		if len(found) > 0 && s.keep {
			return append(found, "kept: namespace "+name), volumes(context.WithoutCancel(ctx))
		}
		return found, errors.Join(volumes(context.WithoutCancel(ctx)), remove(context.WithoutCancel(ctx)))
	}, nil
}

// ended waits for the end of a workflow and gives it. found says what there is to see where it does not end in time.
func (s *kubeSite) ended(ctx context.Context, namespace, name string) (workflow []byte, found []string, err error) {
	state := `jsonpath={.metadata.labels.workflows\.argoproj\.io/completed}=true`
	if _, err := s.site.Kubectl(ctx, nil, "wait", "--namespace", namespace, "workflow/"+name, "--for", state, "--timeout", s.limit.String()); err != nil {
		out, _ := s.site.Kubectl(context.WithoutCancel(ctx), nil, "get", "--namespace", namespace, "workflow/"+name, "-o", "jsonpath={.status.phase} {.status.message}")
		pods, _ := s.site.Kubectl(context.WithoutCancel(ctx), nil, "get", "--namespace", namespace, "pods", "--no-headers")
		return nil, []string{fmt.Sprintf("not done: %v\nstatus: %s\npods:\n%s", err, out, pods)}, nil
	}
	workflow, err = s.site.Kubectl(ctx, nil, "get", "--namespace", namespace, "workflow/"+name, "-o", "json")
	return workflow, nil, err
}

// pods gives the task pods of a namespace.
func (s *kubeSite) pods(ctx context.Context, namespace string) (podList, error) {
	var list podList
	text, err := s.site.Kubectl(ctx, nil, "get", "--namespace", namespace, "pods", "-l", "sluice.dev/run", "-o", "json")
	if err != nil {
		return list, err
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return list, fmt.Errorf("read pods: %w", err)
	}
	return list, nil
}

// volumes makes two volumes that claims of a namespace can be bound to, folders of this machine, and gives what removes
// them: there is nothing here that provisions any.
func (s *kubeSite) volumes(ctx context.Context, namespace string) (func(context.Context) error, error) {
	var names []string
	for i := range 2 {
		name := fmt.Sprintf("%s-%d", namespace, i)
		folder := filepath.Join(s.work, "volumes", name)
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o777), os.Chmod(folder, 0o777)); err != nil {
			return nil, fmt.Errorf("make a volume: %w", err)
		}
		err := s.site.Apply(ctx, "", map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"capacity": map[string]any{"storage": "10Gi"}, "accessModes": []string{"ReadWriteOnce", "ReadWriteMany"},
				"persistentVolumeReclaimPolicy": "Retain", "hostPath": map[string]any{"path": folder},
				"storageClassName": s.class, "claimRef": nil,
			},
		})
		if err != nil {
			return nil, err
		}
		names = append(names, "persistentvolume/"+name)
	}
	return func(ctx context.Context) error {
		_, err := s.site.Kubectl(ctx, nil, append([]string{"delete", "--wait=false", "--ignore-not-found"}, names...)...)
		return err
	}, nil
}

// podList is the part of a list of pods that is looked at.
type podList struct {
	Items []struct {
		Metadata struct{ Name string }
		Spec     struct {
			Containers, InitContainers []struct {
				Name         string
				VolumeMounts []struct{ MountPath string }
			}
			Volumes []map[string]json.RawMessage
		}
	}
}

// plain checks what every task pod must be: no token of the API server, no host path.
func (l podList) plain() []string {
	var found []string
	for _, p := range l.Items {
		for _, c := range append(p.Spec.Containers, p.Spec.InitContainers...) {
			for _, m := range c.VolumeMounts {
				if strings.HasPrefix(m.MountPath, "/var/run/secrets/kubernetes.io") {
					found = append(found, fmt.Sprintf("pod %s has a token of the API server", p.Metadata.Name))
				}
			}
		}
		for _, v := range p.Spec.Volumes {
			if v["hostPath"] != nil {
				found = append(found, fmt.Sprintf("pod %s has a host path", p.Metadata.Name))
			}
		}
	}
	return found
}
