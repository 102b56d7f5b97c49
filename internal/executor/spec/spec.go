// Package spec is the contract between a backend and the executor: the files of a task folder. A backend writes
// [SpecFile] and starts the executor with the folder as its argument; the executor leaves [ResultFile].
//
// All times are UTC, all durations nanoseconds (Go's time.Duration), all sizes bytes. Paths inside the folder are
// relative to it, paths of the task absolute and as the command sees them.
package spec

import "time"

// The files and folders of a task folder.
const (
	SpecFile   = "spec.json"   // what to do, written by the backend before the executor starts
	ResultFile = "result.json" // how it ended, written by the executor, atomically, last
	StateFile  = "state"       // the steps of executors, one a line, see [State]; locked (flock) by the one that lives
	StopFile   = "stop"        // asks the executor to end, written before it is sent a signal, which it may be too young to catch
	StopPipe   = "stop.pipe"   // where an executor that signals cannot reach listens for the same words, see [Spec.Launched]
	LogFile    = "log"         // both output streams of every container, and what the executor itself has to say
	StagedIn   = "in"          // input artifacts, put there by the backend
	StagedOut  = "out"         // output artifacts, put there by the executor
)

// Voice begins the lines in a log that are the executor's own.
const Voice = "sluice-executor: "

// StopForce is what a stop file says that asks for an end at once; any other asks for a gentle one.
const StopForce = "force"

// MaxResult is how much of standard output is kept as a task's result; the end of it is what counts, as in Argo.
const MaxResult = 256 << 10

// MaxParameter bounds the file of one output parameter.
const MaxParameter = 4 << 20

// Spec is a task, ready to be run: nothing in it needs to be resolved any more.
type Spec struct {
	// Path is the attempt's path, for messages.
	Path string `json:"path"`
	// Containers run in the order that their Needs allow. The one named "main", or the only one, gives result and exit code.
	// Without any the executor only enters the sandbox: a probe.
	Containers []Container `json:"containers"`
	Inputs     []Input     `json:"inputs,omitempty"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Artifacts  []Artifact  `json:"artifacts,omitempty"`
	// Folders are made, with their parents, before the commands start.
	Folders []string `json:"folders,omitempty"`
	// Result asks that standard output of the main container be kept.
	Result bool `json:"result,omitempty"`
	// ExecutorOutput is the path of KFP's output metadata file; empty where the task has none.
	ExecutorOutput string `json:"executorOutput,omitempty"`
	// Timeout ends the commands after so long, from the start of the first; 0 is none.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Grace is how long a command may take to end after SIGTERM.
	Grace time.Duration `json:"grace,omitempty"`
	// Mounts place folders of the host in the task's view.
	Mounts []Mount `json:"mounts,omitempty"`
	// Sandbox asks for a private view of the machine; nil runs the commands as plain processes.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Groups are the cgroups that the processes of each container join, by container name.
	Groups map[string][]Group `json:"groups,omitempty"`
	// Launched says that something else runs the executor, in a container: it cannot know the pid that others know it by.
	Launched bool `json:"launched,omitempty"`
	// Boot is the machine's boot ID when the task was made: after a restart nothing of it can still run.
	Boot string `json:"boot,omitempty"`
}

// Container is one command.
type Container struct {
	Name string `json:"name"`
	// Argv is the program and its arguments; a program without a slash is looked up in PATH of Env.
	Argv []string `json:"argv"`
	// Env is the whole environment, "NAME=value"; with Inherit it is added to the executor's own.
	Env     []string `json:"env"`
	Inherit bool     `json:"inherit,omitempty"`
	Dir     string   `json:"dir,omitempty"`
	// User is whom the command runs as, "name", "uid", "name:group" or "uid:gid" of the place where the executor runs, which
	// must be root there; empty is whom the executor runs as.
	User string `json:"user,omitempty"`
	// Needs are the names of containers that must have succeeded first.
	Needs []string `json:"needs,omitempty"`
	// Retries is how often it is started again after a failure, Delay between the starts.
	Retries int           `json:"retries,omitempty"`
	Delay   time.Duration `json:"delay,omitempty"`
}

// Input is an input artifact. Exactly one of From and Data is set.
type Input struct {
	Name string `json:"name"`
	// From is a path in the task folder, or an absolute one of the host, of a file or folder that is copied to Path.
	// What lies in the task folder may be moved instead.
	From string `json:"from,omitempty"`
	// Data is written to Path.
	Data *string `json:"data,omitempty"`
	Path string  `json:"path"`
	// Mode sets permission bits, of all that is inside with Recurse; nil leaves them.
	Mode    *int32 `json:"mode,omitempty"`
	Recurse bool   `json:"recurse,omitempty"`
}

// Parameter is an output parameter that is read from a file.
type Parameter struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Trim takes one newline off the end, as Argo does.
	Trim bool `json:"trim,omitempty"`
	// Default stands in where there is no file; Optional does without a value.
	Default  *string `json:"default,omitempty"`
	Optional bool    `json:"optional,omitempty"`
}

// Artifact is an output artifact.
type Artifact struct {
	Name string `json:"name"`
	// Path is where the task leaves it.
	Path     string `json:"path,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// KeyFrom and MetadataFrom are files that describe the artifact; their text is handed on and nothing is staged.
	KeyFrom      string `json:"keyFrom,omitempty"`
	MetadataFrom string `json:"metadataFrom,omitempty"`
}

// Mount places a folder or file of the host at a path of the task: by a bind mount in a sandbox, else by a symbolic
// link where nothing lies at the path.
type Mount struct {
	From     string `json:"from"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Group is a cgroup: its folder, and whether it is of the unified hierarchy (version 2).
type Group struct {
	Folder  string `json:"folder"`
	Unified bool   `json:"unified,omitempty"`
	// Memory says that it limits memory, so that it can tell of processes that were killed for it.
	Memory bool `json:"memory,omitempty"`
}

// Sandbox says how to build the private view. The executor must be the first process of its own mount and pid
// namespaces (and user namespace, when not root).
type Sandbox struct {
	// Upper is the absolute path of an empty folder that takes what the task writes.
	Upper string `json:"upper"`
	// Memory puts Upper on a tmpfs of the mount namespace: where the folder's own file system cannot take it.
	Memory bool `json:"memory,omitempty"`
	// User says that the executor is in a user namespace. The kernel then allows no overlay of what has other mounts
	// inside, so the view is put together from Layers alone, in a new root.
	User bool `json:"user,omitempty"`
	// Layers are in the order in which to place them, parents first: the other mount points besides "/", or, in a user
	// namespace, all that lies in "/". /dev, /proc and /sys are not among them.
	Layers []Layer `json:"layers,omitempty"`
	// Links are symbolic links that are made in the view where nothing lies: path → target.
	Links map[string]string `json:"links,omitempty"`
}

// Layer is one place of the host in the private view. It gets an overlay unless one of the others says otherwise.
type Layer struct {
	Path string `json:"path"`
	// Bind places it as it is.
	Bind bool `json:"bind,omitempty"`
	// Make makes an empty folder; layers inside follow.
	Make bool `json:"make,omitempty"`
	// Fresh gives the task an empty folder of its own there; layers inside follow.
	Fresh bool `json:"fresh,omitempty"`
	// Link makes a symbolic link to this.
	Link string `json:"link,omitempty"`
}
