package argo

import corev1 "k8s.io/api/core/v1"

// Inputs are what a template takes.
type Inputs struct {
	Parameters []Parameter `json:"parameters,omitempty"`
	Artifacts  []Artifact  `json:"artifacts,omitempty"`
}

// Outputs are what a template gives; in a status with the result and exit code of its command.
type Outputs struct {
	Parameters []Parameter `json:"parameters,omitempty"`
	Artifacts  []Artifact  `json:"artifacts,omitempty"`
	Result     *string     `json:"result,omitempty"`
	ExitCode   *string     `json:"exitCode,omitempty"`
}

// Arguments are what a call gives to its template.
type Arguments struct {
	Parameters []Parameter `json:"parameters,omitempty"`
	Artifacts  []Artifact  `json:"artifacts,omitempty"`
}

// Parameter is a named text.
type Parameter struct {
	Name        string      `json:"name"`
	Default     *AnyString  `json:"default,omitempty"`
	Value       *AnyString  `json:"value,omitempty"`
	ValueFrom   *ValueFrom  `json:"valueFrom,omitempty"`
	GlobalName  string      `json:"globalName,omitempty"`
	Enum        []AnyString `json:"enum,omitempty"`
	Description *AnyString  `json:"description,omitempty"`
}

// ValueFrom says where a parameter's value comes from.
type ValueFrom struct {
	Path            string                       `json:"path,omitempty"`
	JSONPath        string                       `json:"jsonPath,omitempty"`
	JQFilter        string                       `json:"jqFilter,omitempty"`
	Event           string                       `json:"event,omitempty"`
	Parameter       string                       `json:"parameter,omitempty"`
	Supplied        *struct{}                    `json:"supplied,omitempty"`
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	Default         *AnyString                   `json:"default,omitempty"`
	Expression      string                       `json:"expression,omitempty"`
}

// Artifact is a named piece of data and where it lies.
type Artifact struct {
	Name             string `json:"name,omitempty"`
	Path             string `json:"path,omitempty"`
	Mode             *int32 `json:"mode,omitempty"`
	RecurseMode      bool   `json:"recurseMode,omitempty"`
	From             string `json:"from,omitempty"`
	FromExpression   string `json:"fromExpression,omitempty"`
	SubPath          string `json:"subPath,omitempty"`
	ArtifactLocation `json:",inline"`
	GlobalName       string           `json:"globalName,omitempty"`
	Archive          *ArchiveStrategy `json:"archive,omitempty"`
	Optional         bool             `json:"optional,omitempty"`
	ArtifactGC       *ArtifactGC      `json:"artifactGC,omitempty"`
	Deleted          bool             `json:"deleted,omitempty"`

	// FromMetadata (ours) gives the artifact by its JSON description: ours, or the one that Argo emits.
	FromMetadata *string `json:"fromMetadata,omitempty"`
	// KeyFrom and MetadataFrom (ours) take an output's location, or description, from a file that the task writes;
	// nothing is uploaded.
	KeyFrom      *FileRef `json:"keyFrom,omitempty"`
	MetadataFrom *FileRef `json:"metadataFrom,omitempty"`
}

// FileRef names a file inside a task.
type FileRef struct {
	Path string `json:"path"`
}

// ArchiveStrategy says how an output artifact is packed: a gzipped tar by default.
type ArchiveStrategy struct {
	Tar  *TarStrategy `json:"tar,omitempty"`
	None *struct{}    `json:"none,omitempty"`
	Zip  *struct{}    `json:"zip,omitempty"`
}

// TarStrategy sets the compression.
type TarStrategy struct {
	CompressionLevel *int32 `json:"compressionLevel,omitempty"`
}
