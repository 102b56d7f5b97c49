package pod

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
)

// Labels of task pods. The first two are Argo's.
const (
	WorkflowLabel  = "workflows.argoproj.io/workflow"
	CompletedLabel = "workflows.argoproj.io/completed"
	// RunLabel holds the run's UID.
	RunLabel = "sluice.dev/run"
	// InstanceLabel tells the pods of one controller instance from another's; pods of the one without a name have none.
	InstanceLabel = "sluice.dev/instance"
)

// Annotations of task pods. The first two are Argo's.
const (
	NodeNameAnnotation = "workflows.argoproj.io/node-name"
	NodeIDAnnotation   = "workflows.argoproj.io/node-id"
	// IdentityAnnotation says which attempt a pod is for, see [Identity]: names of pods may collide, identities do not.
	IdentityAnnotation         = "sluice.dev/identity"
	defaultContainerAnnotation = "kubectl.kubernetes.io/default-container"
)

// Finalizer keeps a pod until its result is recorded or its attempt forgotten.
const Finalizer = "sluice.dev/task"

// The names of what is added to a pod.
const (
	InitContainer = "sluice-init"

	sharedVolume = "sluice"
	tokenVolume  = "sluice-token" //nolint:gosec // a name
	specVolume   = "sluice-spec"
	tempVolume   = "sluice-tmp"
	folderVolume = "sluice-folder-" // and a number

	// specFolder is where the specification lies that is too long for a variable.
	specFolder = "/var/run/sluice-spec"
	homePrefix = "/home-" // below the shared folder, and the container's name
)

// mainContainer is what Argo and KFP call the container that a task is about.
const mainContainer = "main"

// Identity names an attempt wherever it is: by its run's UID and its path.
func Identity(runUID, path string) string { return runUID + "/" + path }

// Name is the name of an attempt's pod: the engine's, in the letters that Kubernetes takes.
func Name(cmd engine.StartTask) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, cmd.Pod), "-.")
}

// LabelValue is a text as the value of a label: as it is where that is allowed, else its beginning and its hash.
func LabelValue(text string) string {
	const most, short = 63, 10
	clean := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.', r == '_':
			return r
		}
		return '-'
	}, text), "-._")
	if clean == text && len(text) <= most {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return strings.TrimLeft(clean[:min(len(clean), most-1-short)]+"-"+hex.EncodeToString(sum[:])[:short], "-")
}
