package spec

import "time"

// What a pod's containers are given, besides what their image and template say.
const (
	// PodEnv holds a [Pod] as JSON; PodFileEnv the path of a file with it, where it is too long for a variable.
	PodEnv     = "SLUICE_POD"
	PodFileEnv = "SLUICE_POD_FILE"
	// PodDir is an emptyDir that all containers of the pod share: the executor lies there, each container's task folder,
	// and the marks by which they tell each other how far they are.
	PodDir = "/sluice"
	// PodExecutor is where the init container puts the executor.
	PodExecutor = PodDir + "/bin/sluice-executor"
	// TokenFile is the pod's token for the task endpoint.
	TokenFile = "/var/run/sluice/token" //nolint:gosec // a path
	// TokenAudience is who the token is for.
	TokenAudience = "sluice.dev/task-endpoint" //nolint:gosec // a name
	// MaxTermination bounds a result in a termination message, in bytes; a larger one goes to the endpoint.
	MaxTermination = 2 << 10
	// HandIn is how much longer than its command, told to end, a container may take: for its outputs and its report.
	HandIn = 10 * time.Second
	// TerminationLog is where a container leaves its termination message: Kubernetes' own default.
	TerminationLog = "/dev/termination-log"
)

// Pod is what one container of a task pod has to do.
type Pod struct {
	// Task is the task with this container as its only one. Its command may be empty: then it is what follows "pod" on the
	// executor's own command line, where the kubelet has put in the variables that it names, and people can see it. Inputs
	// have neither From nor Data set where they come from the endpoint. Only the container Main has inputs and outputs.
	Task Spec `json:"task"`
	// Main is the name of the container that has the inputs and outputs and reports.
	Main string `json:"main"`
	// Sidecar containers end, gently, when all others have.
	Sidecar bool `json:"sidecar,omitempty"`
	// Containers are the names of all containers that are no sidecars, for those that wait for their end.
	Containers []string `json:"containers,omitempty"`
	// Await are the containers whose commands must have succeeded before this one's starts.
	Await []string `json:"await,omitempty"`
	// Endpoint is the base URL of the task endpoint; empty where the task needs none.
	Endpoint string `json:"endpoint,omitempty"`
	// CA are the PEM certificates that the endpoint is trusted by; empty is the system's.
	CA string `json:"ca,omitempty"`
	// Fetch are the inputs that the endpoint knows: by the index of the task's inputs.
	Fetch []Transfer `json:"fetch,omitempty"`
	// Save are the outputs that the endpoint stores.
	Save []Transfer `json:"save,omitempty"`
}

// Transfer is an artifact that goes through the task endpoint. Where its bytes lie is the endpoint's business.
type Transfer struct {
	// Name is the artifact's, Index its place in a list.
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"`
	// Input is the index of the task's input that it is for; of outputs unused.
	Input int `json:"input,omitempty"`
	// Archive and SubPath are the artifact's, see program.Artifact; File is the name at the top of an archive.
	Archive string `json:"archive,omitempty"`
	SubPath string `json:"subPath,omitempty"`
	File    string `json:"file,omitempty"`
}

// Report is what the container Main leaves in its termination message, as JSON.
type Report struct {
	// Result is how it ended; nil where the endpoint has it.
	Result *Result `json:"result,omitempty"`
	// Stored says that the result was too large and lies with the endpoint; Digest is the SHA-256 of its JSON, in hex.
	Stored bool   `json:"stored,omitempty"`
	Digest string `json:"digest,omitempty"`
}
