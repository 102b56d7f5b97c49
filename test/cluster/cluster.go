// Package cluster gives whole-program tests a Kubernetes: the one that $KUBECONFIG names, or a real one-node cluster that is
// brought up on this machine by the scripts of a folder (up, down, build, load).
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Cluster is a Kubernetes that tests use.
type Cluster struct {
	// Kubeconfig is the path of its kubeconfig.
	Kubeconfig string
	// scripts is the folder that brought it up; empty for one that was there.
	scripts string
	kubectl string
}

// ErrNone says that there is no cluster and none can be brought up here.
var ErrNone = errors.New("there is no cluster")

// Up gives the cluster of $KUBECONFIG, or brings one up by the scripts of a folder, building it where it never was. It
// stays up: starting it is what costs time.
func Up(ctx context.Context, scripts string, log io.Writer) (*Cluster, error) {
	if why := os.Getenv("SLUICE_NO_CLUSTER"); why != "" {
		return nil, fmt.Errorf("%w: %s", ErrNone, why)
	}
	c := &Cluster{Kubeconfig: os.Getenv("KUBECONFIG"), kubectl: "kubectl"}
	if c.Kubeconfig != "" {
		return c, c.findKubectl()
	}
	c.scripts = scripts
	if _, err := os.Stat(filepath.Join(scripts, "up")); err != nil {
		return nil, fmt.Errorf("%w: set KUBECONFIG, or CLUSTER to the folder of scripts that bring one up: %w", ErrNone, err)
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: set KUBECONFIG; to bring one up needs root", ErrNone)
	}
	for _, program := range []string{"containerd", "runc", "iptables", "conntrack", "ip", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w: to bring one up needs %s", ErrNone, program)
		}
	}
	if _, err := script(ctx, log, nil, filepath.Join(scripts, "build")); err != nil {
		return nil, fmt.Errorf("build the cluster: %w", err)
	}
	out, err := script(ctx, log, nil, filepath.Join(scripts, "up"))
	if err != nil {
		return nil, fmt.Errorf("bring the cluster up: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	c.Kubeconfig = lines[len(lines)-1]
	return c, c.findKubectl()
}

func (c *Cluster) findKubectl() error {
	if path, err := exec.LookPath("kubectl"); err == nil {
		c.kubectl = path
		return nil
	}
	home, err := os.UserHomeDir()
	if err == nil {
		built := filepath.Join(home, ".cache", "sluice-cluster", "bin", "kubectl")
		if _, err := os.Stat(built); err == nil {
			c.kubectl = built
			return nil
		}
	}
	return fmt.Errorf("%w: kubectl is not in PATH", ErrNone)
}

// Own says whether the cluster was brought up here, so that images can be loaded into its node.
func (c *Cluster) Own() bool { return c.scripts != "" }

// Kubectl runs kubectl and gives its standard output. stdin may be nil.
func (c *Cluster) Kubectl(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), nil
}

// Load puts an image archive into the node.
func (c *Cluster) Load(ctx context.Context, archive io.Reader) error {
	if !c.Own() {
		return errors.New("images can only be loaded into a cluster that was brought up here")
	}
	_, err := script(ctx, nil, archive, filepath.Join(c.scripts, "load"), "-")
	return err
}

func script(ctx context.Context, log io.Writer, stdin io.Reader, path string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if log != nil {
		cmd.Stderr = io.MultiWriter(&errs, log)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", path, err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}
