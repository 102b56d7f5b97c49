package spec

import (
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// Phase is how a task or container ended.
type Phase string

// The phases. A command that failed is Failed; what broke around it is an Error.
const (
	Succeeded Phase = "Succeeded"
	Failed    Phase = "Failed"
	Error     Phase = "Error"
)

// Result is how a task ended.
type Result struct {
	Phase    Phase  `json:"phase"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Message  string `json:"message,omitempty"`
	// Ran says that a command was started. An Error without it did nothing and can be tried again without harm.
	Ran bool `json:"ran,omitempty"`
	// Stopped says that a signal from outside ended it, TimedOut that its Timeout did.
	Stopped  bool `json:"stopped,omitempty"`
	TimedOut bool `json:"timedOut,omitempty"`

	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`

	// Stdout is the end of the main container's standard output without its last newline.
	Stdout *string `json:"stdout,omitempty"`
	// Parameters are texts as they were read, or values from the executor output file.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Artifacts are what was found, by name.
	Artifacts map[string]Found `json:"artifacts,omitempty"`
	// Reported are the artifacts as the executor output file describes them.
	Reported map[string][]program.Artifact `json:"reported,omitempty"`
	// Containers are in the order of the spec.
	Containers []ContainerResult `json:"containers,omitempty"`
	// CPU is the processor time of the commands, MaxMemory the largest resident size of one of their processes.
	CPU       time.Duration `json:"cpu,omitempty"`
	MaxMemory int64         `json:"maxMemory,omitempty"`
	// Warnings are for the backend's log.
	Warnings []string `json:"warnings,omitempty"`
}

// Found is an output artifact that the task left. Its bytes are staged or, in a pod, saved; or Key or Metadata describe it.
type Found struct {
	// Staged is where its bytes lie in the task folder.
	Staged string `json:"staged,omitempty"`
	// Saved says what the task's pod itself has stored: one for an artifact, for a list one for each of Reported in their
	// order, without a Digest where there were no bytes, or where the component has put them elsewhere.
	Saved []Saved `json:"saved,omitempty"`
	// Key and Metadata are the texts of its keyFrom and metadataFrom files.
	Key      *string `json:"key,omitempty"`
	Metadata *string `json:"metadata,omitempty"`
	// Items are where the bytes of a list's artifacts lie, in the order of Reported; "" has none.
	Items []string `json:"items,omitempty"`
}

// Saved is an artifact that was stored: its Digest ("sha256:" and hex) and its Size in bytes, see artifact.Save.
type Saved struct {
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// ContainerResult is how one container ended.
type ContainerResult struct {
	Name     string    `json:"name"`
	Phase    Phase     `json:"phase"`
	ExitCode *int      `json:"exitCode,omitempty"`
	Message  string    `json:"message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}
