package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/test/images"
)

// executorImage names the executor, as it is loaded into the node.
const executorImage = "sluice.local/sluice-executor"

// labelInstance is the label of objects that a controller with an instance ID looks after.
const labelInstance = "workflows.argoproj.io/controller-instanceid"

// hostAddress is where pods of a cluster that was brought up here reach this machine.
const hostAddress = "10.244.0.1"

// controllerSettings say what images run by themselves: there is no registry to ask.
const controllerSettings = `images:
  argoproj/argosay:v1: {entrypoint: [/usr/local/bin/cowsay]}
  argoproj/argosay:v2: {entrypoint: [/argosay]}
  nginx:1.13: {entrypoint: [nginx], cmd: [-g, "daemon off;"]}
  nginx:latest: {entrypoint: [nginx], cmd: [-g, "daemon off;"]}
  influxdb:1.2: {entrypoint: [influxd]}
  curlimages/curl:latest: {entrypoint: [curl]}
  stedolan/jq:latest: {entrypoint: [jq]}
  busybox: {cmd: [sh]}
  alpine:3.23: {cmd: [sh]}
  python:alpine3.23: {cmd: [python3]}
`

// Options say what a site is made of.
type Options struct {
	// Scripts is the folder that brings a cluster up; Sluice the program; its executor lies beside it.
	Scripts, Sluice string
	// Work is a folder for what is kept between runs; Programs the corpus' folder of programs for images.
	Work, Programs string
	// Packages is the file that lists what components of pipelines install, PythonPrograms a folder of programs that their
	// images have; empty for a site without their images.
	Packages, PythonPrograms string
	// S3 is a program (versitygw) that serves a folder as an object store; empty is none.
	S3 string
	// Args are more arguments for the controller.
	Args []string
	// Instance is the ID of the controller and of what Create and Apply make, so that several sites share a cluster; empty for
	// a controller that looks after all objects without one.
	Instance string
	// Log takes what the scripts and the controller have to say; nil discards the first and keeps the second in Work.
	Log io.Writer
}

// Site is a cluster with images, custom resources and a running controller.
type Site struct {
	*Cluster
	options    Options
	controller *exec.Cmd
	ended      chan error
	port       int
	store      *s3Server
	// artifacts is a folder that every user can reach: tasks of pipelines see artifacts at the paths of their URIs.
	artifacts string
}

// S3 is the address of the object store, empty where there is none.
func (s *Site) S3() string {
	if s.store == nil {
		return ""
	}
	return s.store.address
}

// Start makes a site. Close ends the controller; the cluster stays.
func Start(ctx context.Context, o Options) (*Site, error) {
	c, err := Up(ctx, o.Scripts, o.Log)
	if err != nil {
		return nil, err
	}
	s := &Site{Cluster: c, options: o}
	if c.Own() {
		if err := s.loadImages(ctx); err != nil {
			return nil, err
		}
	}
	crds, err := exec.CommandContext(ctx, o.Sluice, "install", "--crds-only").Output()
	if err != nil {
		return nil, fmt.Errorf("sluice install: %w", err)
	}
	if _, err := c.Kubectl(ctx, crds, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return nil, err
	}
	if _, err := c.Kubectl(ctx, nil, "wait", "--for", "condition=Established", "crd/workflows.argoproj.io", "--timeout", "60s"); err != nil {
		return nil, err
	}
	if o.S3 != "" {
		if s.store, err = startS3(ctx, o.S3, filepath.Join(o.Work, "s3"), filepath.Join(o.Work, "s3.log")); err != nil {
			return nil, err
		}
	}
	if s.artifacts, err = os.MkdirTemp("", "sluice-artifacts-"); err != nil {
		return nil, fmt.Errorf("make a folder for artifacts: %w", err)
	}
	return s, s.startController(ctx)
}

// loadImages puts the images that manifests name, and the executor's, into the node, those that are not there.
func (s *Site) loadImages(ctx context.Context) error {
	executor, err := os.ReadFile(filepath.Join(filepath.Dir(s.options.Sluice), "sluice-executor"))
	if err != nil {
		return fmt.Errorf("read the executor: %w", err)
	}
	layer, err := images.Folder(map[string][]byte{"sluice-executor": executor})
	if err != nil {
		return err
	}
	if err := s.loadImage(ctx, []string{s.executor()}, []string{"/sluice-executor"}, layer); err != nil {
		return err
	}
	debian, err := images.DebianRoot(ctx, s.options.Work)
	if err != nil {
		return err
	}
	if err := s.once(debian, func() error { return s.loadDebian(ctx, debian) }); err != nil || s.options.Packages == "" {
		return err
	}
	python, err := images.PythonLayer(ctx, s.options.Packages, s.options.PythonPrograms, s.options.Work)
	if err != nil {
		return err
	}
	return s.once(python, func() error { return s.loadRoots(ctx, images.Python(), debian, python) })
}

// once loads what comes of an archive, unless that was done since the cluster came up.
func (s *Site) once(archive string, load func() error) error {
	marker := filepath.Join(s.options.Work, "loaded-"+filepath.Base(archive))
	if up, err := os.Stat(s.Kubeconfig); err == nil {
		if loaded, err := os.Stat(marker); err == nil && loaded.ModTime().After(up.ModTime()) {
			return nil
		}
	}
	if err := load(); err != nil {
		return err
	}
	return os.WriteFile(marker, nil, 0o600)
}

// loadDebian loads the images that are made of busybox, and those that the Debian stands in for.
func (s *Site) loadDebian(ctx context.Context, debian string) error {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return fmt.Errorf("there is no busybox to pack images from (Debian's busybox-static): %w", err)
	}
	for _, i := range images.Small() {
		root, err := i.Root(ctx, busybox, s.options.Programs)
		if err != nil {
			return err
		}
		var entrypoint []string
		if i.Entrypoint != "" {
			entrypoint = []string{i.Entrypoint}
		}
		if err := s.loadImage(ctx, i.Names, entrypoint, root); err != nil {
			return err
		}
	}
	return s.loadRoots(ctx, images.Debian(), debian)
}

// loadRoots loads an image of layers that lie in archives.
func (s *Site) loadRoots(ctx context.Context, names []string, archives ...string) error {
	var layers [][]byte
	for _, archive := range archives {
		layer, err := os.ReadFile(archive)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	return s.loadImage(ctx, names, nil, layers...)
}

// executor names the executor's image: each instance has its own.
func (s *Site) executor() string {
	tag := "test"
	if s.options.Instance != "" {
		tag = s.options.Instance
	}
	return executorImage + ":" + tag
}

// file gives the path of a file of this site in the folder of what is kept.
func (s *Site) file(name string) string {
	if s.options.Instance != "" {
		name = s.options.Instance + "-" + name
	}
	return filepath.Join(s.options.Work, name)
}

func (s *Site) loadImage(ctx context.Context, names, entrypoint []string, layers ...[]byte) error {
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(images.Archive(w, names, entrypoint, layers...)) }()
	return s.Load(ctx, r)
}

// startController runs the controller on this machine, at a free port, until Close.
func (s *Site) startController(ctx context.Context) error {
	var err error
	if s.port, err = freePort(ctx); err != nil {
		return err
	}
	return s.Restart(ctx)
}

// Restart starts the controller, at the address that it had.
func (s *Site) Restart(ctx context.Context) error {
	if err := os.MkdirAll(s.options.Work, 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(s.file("controller.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	settings := s.file("controller.yaml")
	if err := os.WriteFile(settings, []byte(controllerSettings), 0o644); err != nil {
		return err
	}
	args := append([]string{
		"controller", "--config", settings, "--kubeconfig", s.Kubeconfig, "--executor-image", s.executor(),
		"--endpoint-address", fmt.Sprintf("0.0.0.0:%d", s.port), "--endpoint-url", fmt.Sprintf("https://%s:%d", hostAddress, s.port),
		"--artifact-folder", s.artifacts, "--metrics-address", "0", "--health-address", "0",
	}, s.options.Args...)
	if s.options.Instance != "" {
		args = append(args, "--instance-id", s.options.Instance)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.options.Sluice, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start the controller: %w", err), log.Close())
	}
	s.controller, s.ended = cmd, make(chan error, 1)
	go func() { s.ended <- errors.Join(cmd.Wait(), log.Close()) }()
	return nil
}

// Kill ends the controller as a crash would.
func (s *Site) Kill() error {
	if err := s.controller.Process.Kill(); err != nil {
		return fmt.Errorf("kill the controller: %w", err)
	}
	killed := <-s.ended
	s.controller = nil
	if killed == nil {
		return errors.New("the controller ended by itself before it was killed")
	}
	return nil
}

// Close ends the controller and the object store.
func (s *Site) Close(context.Context) error {
	if s.store != nil {
		defer s.store.close()
	}
	defer os.RemoveAll(s.artifacts)
	if s.controller == nil {
		return nil
	}
	_ = s.controller.Process.Signal(syscall.SIGTERM) // it may have ended: the wait tells
	const patience = 20 * time.Second
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patience):
		_ = s.controller.Process.Kill()
		return errors.Join(errors.New("the controller did not end when told to"), <-s.ended)
	}
}

// Namespace makes a namespace that enforces a level of Pod Security, and gives what removes it.
func (s *Site) Namespace(ctx context.Context, name, level string) (func(context.Context) error, error) {
	object := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
		"name": name, "labels": map[string]any{"pod-security.kubernetes.io/enforce": level},
	}}
	if _, err := s.Kubectl(ctx, nil, "delete", "namespace", name, "--ignore-not-found"); err != nil {
		return nil, err
	}
	if err := s.Create(ctx, "", object); err != nil {
		return nil, err
	}
	if _, err := s.Kubectl(ctx, nil, "wait", "--namespace", name, "serviceaccount/default", "--for", "create", "--timeout", "30s"); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		_, err := s.Kubectl(ctx, nil, "delete", "namespace", name, "--wait=false")
		return err
	}, nil
}

// Create makes an object.
func (s *Site) Create(ctx context.Context, namespace string, object map[string]any) error {
	_, err := s.CreateNamed(ctx, namespace, object)
	return err
}

// Apply makes an object, or makes one that is there like it: those of the whole cluster are shared by tests.
func (s *Site) Apply(ctx context.Context, namespace string, object map[string]any) error {
	s.label(object)
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if meta, ok := object["metadata"].(map[string]any); !ok || meta["name"] == nil {
		return s.Create(ctx, namespace, object)
	}
	args := []string{"apply", "--server-side", "--force-conflicts", "-f", "-"}
	if namespace != "" {
		args = append(args, "--namespace", namespace)
	}
	_, err = s.Kubectl(ctx, text, args...)
	return err
}

// CreateNamed makes an object and gives its name.
func (s *Site) CreateNamed(ctx context.Context, namespace string, object map[string]any) (string, error) {
	s.label(object)
	text, err := json.Marshal(object)
	if err != nil {
		return "", err
	}
	args := []string{"create", "--validate=warn", "-f", "-", "-o", "name"}
	if namespace != "" {
		args = append(args, "--namespace", namespace)
	}
	out, err := s.Kubectl(ctx, text, args...)
	if err != nil {
		return "", err
	}
	_, name, _ := strings.Cut(string(bytes.TrimSpace(out)), "/")
	return name, nil
}

// ArtifactFolder is where workflows of a namespace have artifacts that are files of this machine.
func (s *Site) ArtifactFolder(namespace string) string {
	return filepath.Join(s.artifacts, namespace)
}

// Instance is the ID that the site's controller looks for; empty for none.
func (s *Site) Instance() string { return s.options.Instance }

// label puts the site's instance on an object that controllers look after.
func (s *Site) label(object map[string]any) {
	version, _ := object["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	if s.options.Instance == "" || group != "argoproj.io" && group != "sluice.dev" {
		return
	}
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	labels, _ := meta["labels"].(map[string]any)
	if labels == nil {
		labels = map[string]any{}
		meta["labels"] = labels
	}
	labels[labelInstance] = s.options.Instance
}
