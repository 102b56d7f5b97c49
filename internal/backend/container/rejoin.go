package container

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// folderLabel tells people and other programs which task folder a container is for.
const folderLabel = "dev.sluice.task-folder"

// containerName is the name of the one container that a task folder may have at a time. The folder's own name is unique
// in its run only.
func containerName(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return "sluice-" + filepath.Base(folder) + "-" + hex.EncodeToString(sum[:4])
}

// Rejoin waits for a container whose "podman run" was killed: the container does not end with it. What is left of one that
// has ended or never ran is removed, so that its name can be used again.
func (l *launcher) Rejoin(ctx context.Context, folder string) ([]string, error) {
	name := containerName(folder)
	state, err := l.state(ctx, name)
	if err != nil {
		return nil, err
	}
	switch state {
	case "":
		return nil, nil
	case "running", "paused", "stopping", "restarting":
		return []string{l.program, "wait", name}, nil
	}
	if _, err := l.output(ctx, "rm", "--force", name); err != nil {
		// The container may have removed itself, as it was told when it was started.
		if state, lookErr := l.state(ctx, name); lookErr != nil || state != "" {
			return nil, err
		}
	}
	return nil, nil
}

// state is the state of a container; empty where there is none.
func (l *launcher) state(ctx context.Context, name string) (string, error) {
	out, err := l.output(ctx, "ps", "--all", "--filter", "name=^"+name+"$", "--format", "{{.State}}")
	return strings.TrimSpace(string(out)), err
}
